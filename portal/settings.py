"""Settings, all of them from the environment; the same code path in demo, tests and production."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import environ
from csp.constants import NONE, SELF

from portal import logs, schedule
from portal.alerts.guard import networks

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.FileAwareEnv()


def _origins(url: str) -> list[str]:
    """["https://id.example.org"] for any address there, for the content security policy."""
    parts = urlsplit(url)
    return [f"{parts.scheme}://{parts.netloc}"] if parts.netloc else []


# --- Who we are -----------------------------------------------------------------------------------
DEBUG = env.bool("DEBUG", default=False)
# An empty key is refused by Django itself, so production cannot start without one.
SECRET_KEY = env.str("SECRET_KEY", default="for-development-only" if DEBUG else "")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
# Where people reach this Berth; used in snippets and mails.
PUBLIC_URL = env.str("PUBLIC_URL", default="http://localhost:8000").rstrip("/")

# What leads from a code to its page: a function of the code, empty where no page tells of it.
CODE_PAGES = "devices.runbooks.address_of"

# --- The cluster ----------------------------------------------------------------------------------
# Empty: $KUBECONFIG or the in-cluster account. A path that does not exist yet is waited for.
CLUSTER_KUBECONFIG = env.str("BERTH_KUBECONFIG", default="")
CLUSTER_NAME = env.str("BERTH_CLUSTER_NAME", default="cluster")
# A small JSON file {text, done, total} by whoever still prepares the cluster; shown in a banner.
CLUSTER_NOTICE_FILE = env.str("BERTH_CLUSTER_NOTICE_FILE", default="")
# No news for so long, and pages call the mirror stale.
MIRROR_STALE_AFTER = timedelta(seconds=env.int("BERTH_MIRROR_STALE_SECONDS", default=45))

# --- Apps -----------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.forms",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "django_structlog",
    "csp",
    "pgtrigger",
    "portal.ui",
    "portal.api",
    "portal.audit",
    "portal.approvals",
    "portal.alerts",
    "portal.outbox",
    "tenants",
    "devices",
    "migrationplan",
    "portal",
]

MIDDLEWARE = [
    "portal.probes.ProbeMiddleware",
    "portal.scraping.MetricsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    # Before all that asks the database: a refusal names the request as well.
    "portal.request_ids.RequestIdMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "portal.ui.htmx.FragmentMiddleware",
    "tenants.viewing.ViewingMiddleware",
    "portal.ui.refusals.RefusalMiddleware",
]

ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "devices.shell.shell",
            ],
            "builtins": ["portal.ui.templatetags.berth"],
        },
    }
]
MESSAGE_STORAGE = "portal.ui.notices.NoticeStorage"
FORM_RENDERER = "portal.ui.forms.BerthRenderer"

# --- State ----------------------------------------------------------------------------------------
DATABASES = {"default": env.db("DATABASE_URL", default="postgresql:///berth")}
DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
    "min_size": 1,
    "max_size": env.int("DATABASE_POOL_SIZE", default=10),
    "timeout": 10,
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

VALKEY_URL = env.str("VALKEY_URL", default="redis://127.0.0.1:6379/0")
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": VALKEY_URL,
        "KEY_PREFIX": "berth",
    }
}
# Rows survive an empty Valkey; being signed out would not be "nothing lost".
SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_AGE = 60 * 60 * 12

# --- Work -----------------------------------------------------------------------------------------
CELERY_BROKER_URL = VALKEY_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 120
CELERY_TASK_SOFT_TIME_LIMIT = 90
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Longer than any task may run, else a slow one is delivered twice at the same time.
    "visibility_timeout": 300,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
}
# A hint that cannot be sent is dropped after a moment: the outbox sweep sends it again.
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1}
CELERY_BEAT_SCHEDULE = schedule.SCHEDULE

# --- People ---------------------------------------------------------------------------------------
AUTH_USER_MODEL = "tenants.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
ACCOUNT_ADAPTER = "tenants.accounts.ClosedAccounts"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = {"login_failed": "10/m/ip,5/5m/key", "change_password": "5/m/user"}
ALLAUTH_TRUSTED_PROXY_COUNT = env.int("TRUSTED_PROXY_COUNT", default=0)
# The company's sign-in; empty: local accounts only. The provider knows Berth as a client with the
# redirect address <PUBLIC_URL>/account/oidc/company/login/callback/.
OIDC_SERVER_URL = env.str("OIDC_SERVER_URL", default="").rstrip("/")
OIDC_GROUPS_CLAIM = env.str("OIDC_GROUPS_CLAIM", default="groups")
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "SCOPE": env.list("OIDC_SCOPES", default=["openid", "profile", "email"]),
        "APPS": [
            {
                "provider_id": "company",
                "name": env.str("OIDC_NAME", default="company account"),
                "client_id": env.str("OIDC_CLIENT_ID", default="berth"),
                "secret": env.str("OIDC_CLIENT_SECRET", default=""),
                "settings": {"server_url": OIDC_SERVER_URL},
            }
        ]
        if OIDC_SERVER_URL
        else [],
    }
}
SOCIALACCOUNT_ADAPTER = "tenants.accounts.CompanyAccounts"
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_EMAIL_REQUIRED = False
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
MFA_TOTP_ISSUER = "Berth"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
USERSESSIONS_TRACK_ACTIVITY = True

# --- Templates ------------------------------------------------------------------------------------
# So many approvers must say yes to a version before tenants can ask for it.
TEMPLATE_APPROVALS = env.int("TEMPLATE_APPROVALS", default=1)
# Seconds that a program waits for the API server's answer before it is told where to look for it;
# fewer than the ten after which many clients give up.
DRY_RUN_PATIENCE = 8.0

# --- What is forgotten with time (portal.retention) -----------------------------------------------
# Events of asks that are over; leaks that are gone; links and invitations that nobody can use.
KEEP_HISTORY_DAYS = env.int("KEEP_HISTORY_DAYS", default=400)
KEEP_LEAKS_DAYS = env.int("KEEP_LEAKS_DAYS", default=180)
KEEP_LINKS_DAYS = env.int("KEEP_LINKS_DAYS", default=30)
# Readings of gates of waves that are over; the newest of each gate stays for good.
KEEP_READINGS_DAYS = env.int("KEEP_READINGS_DAYS", default=180)

# --- Metrics --------------------------------------------------------------------------------------
# Whoever has it reads `/metrics` of web; empty: there is no such page.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
# Where watch and worker tell theirs; 0: nowhere.
METRICS_HOST = env.str("METRICS_HOST", default="127.0.0.1")
METRICS_PORT = env.int("METRICS_PORT", default=0)

# --- Traces (portal.tracing) ----------------------------------------------------------------------
# OpenTelemetry's own names. Where a collector takes OTLP over HTTP; empty: nobody traces anything.
TRACES_ENDPOINT = env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", default="")
if not TRACES_ENDPOINT and (_base := env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="")):
    TRACES_ENDPOINT = f"{_base.rstrip('/')}/v1/traces"
# What the collector wants to be told, as in `authorization=Bearer%20…`.
TRACES_HEADERS = env.str("OTEL_EXPORTER_OTLP_HEADERS", default="").strip()
if env.bool("OTEL_SDK_DISABLED", default=False):
    TRACES_ENDPOINT = ""
if TRACES_ENDPOINT:
    # Behind probes, scrapes and files, which are nobody's work.
    MIDDLEWARE.insert(
        MIDDLEWARE.index("csp.middleware.CSPMiddleware"), "portal.tracing.TracingMiddleware"
    )

# --- Conversion of nodes --------------------------------------------------------------------------
# Images of Berth's own Pods: the node probe (deploy/nodeprobe), and any that only waits.
PROBE_IMAGE = env.str("PROBE_IMAGE", default="localhost/berth/nodeprobe:1")
CANARY_IMAGE = env.str("CANARY_IMAGE", default="localhost/berth/pause:1")

# --- Alerts ---------------------------------------------------------------------------------------
# Webhooks go to public addresses over https; to others only within these networks.
WEBHOOK_NETWORKS = networks(env.list("WEBHOOK_NETWORKS", default=[]))
# smtp://user:password@host:587 or smtp+tls://…; empty: this Berth sends no mail.
EMAIL_CONFIGURED = bool(env.str("EMAIL_URL", default=""))
vars().update(env.email("EMAIL_URL", default="dummymail://"))
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", default="berth@localhost")
EMAIL_TIMEOUT = 10

# --- API ------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tenants.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.texts.KeptJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "portal.api.paging.CursorPaging",
    "DEFAULT_SCHEMA_CLASS": "portal.api.schema.BerthSchema",
    "EXCEPTION_HANDLER": "portal.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
# So many requests a minute of each token, and of each person who uses the API signed in.
API_RATES = {
    "reads": env.int("API_READS_A_MINUTE", default=1200),
    "writes": env.int("API_WRITES_A_MINUTE", default=300),
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Berth",
    "VERSION": "1",
    "DESCRIPTION": "Ask for devices, see where they stand, release them.",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "ApprovalStateEnum": "portal.approvals.models.STATES",
        "ClaimStateEnum": "devices.models.claim.STATES",
        "GrantStateEnum": "tenants.models.Grant.State",
        "TemplateStateEnum": "devices.api.author_shapes.STATES",
        "TenantStateEnum": "tenants.models.Tenant.State",
        "TenantRoleEnum": "tenants.models.Membership.Role",
        "AnyRoleEnum": "tenants.models.group.ROLES",
        "AlertSeverityEnum": "portal.alerts.models.SEVERITIES",
        "PathEnum": "devices.api.routes.PATHS",
        "OwnerEnum": "devices.models.ownership.OWNERS",
        "DrillKindEnum": "migrationplan.models.drill.KINDS",
        "RoomStateEnum": "migrationplan.models.makeroom.STATES",
        "TemplateAudienceEnum": "devices.models.ClaimTemplate.Audience",
        "WaveAudienceEnum": "migrationplan.models.plan.AUDIENCES",
        "EndEnum": "devices.models.Freeze.End",
        "IsolationEndEnum": "devices.models.Isolation.End",
        "LimitMeasureEnum": "tenants.models.limit.MEASURES",
        "GateMeasureEnum": "migrationplan.models.reading.MEASURES",
        "WavePhaseEnum": "migrationplan.models.plan.PHASES",
        "ClosurePhaseEnum": "devices.models.closure.PHASES",
        "LedgerPhaseEnum": "devices.models.ledgerrollout.PHASES",
        "FrozenPathEnum": "devices.models.Freeze.Path",
        "DrillResultEnum": "migrationplan.models.drill.RESULTS",
        "SignalResultEnum": ["stored", "known", "refused"],
        "GateVerdictEnum": "migrationplan.models.reading.VERDICTS",
        "DecisionVerdictEnum": "portal.approvals.models.VERDICTS",
        "WaitVerdictEnum": "devices.api.claim_use.VERDICTS",
        "DriftVerdictEnum": "devices.api.inventories.VERDICTS",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "portal.api.schema.document_ground",
    ],
}

# --- What browsers may do -------------------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        # Chromium holds the redirect to the provider after the sign-in button against this list.
        "form-action": [SELF, *env.list("OIDC_FORM_ORIGINS", default=_origins(OIDC_SERVER_URL))],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
# Plain HTTP exists only on loopback, in the demo and in tests.
HTTPS = env.bool("HTTPS", default=not DEBUG)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS and env.bool("SECURE_SSL_REDIRECT", default=True)
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("BEHIND_TLS_PROXY", default=False) else None
)

# --- Words, time, files ---------------------------------------------------------------------------
LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# In a checkout files come from where they lie; an image has them collected, hashed and compressed.
WHITENOISE_USE_FINDERS = DEBUG or env.bool("STATIC_FROM_SOURCE", default=False)
STATIC_ROOT = None if WHITENOISE_USE_FINDERS else BASE_DIR / "staticfiles"
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if WHITENOISE_USE_FINDERS
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- Logs -----------------------------------------------------------------------------------------
# The address in X-Forwarded-For is anybody's claim; allauth counts proxies instead.
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
DJANGO_STRUCTLOG_CELERY_ENABLED = True
LOGGING = logs.configure(
    level=env.str("LOG_LEVEL", default="INFO"), readable=DEBUG, traced=bool(TRACES_ENDPOINT)
)
