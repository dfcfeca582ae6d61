# Berth's image: every process is this one with another command. Build with any OCI builder:
#
#   docker build --build-arg PYTHON_IMAGE=docker.io/library/python:3.13-slim-bookworm@sha256:… -t berth .
#
# The same bytes twice: name the base by digest, pass SOURCE_DATE_EPOCH, and let BuildKit rewrite
# timestamps (--output type=image,rewrite-timestamp=true). Packages are pinned by hash.
ARG PYTHON_IMAGE=docker.io/library/python:3.13-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
COPY requirements.lock /build/
RUN python -m venv /opt/berth \
 && /opt/berth/bin/pip install --require-hashes --no-compile --only-binary :all: -r /build/requirements.lock \
 && /opt/berth/bin/pip uninstall --yes pip
WORKDIR /srv/berth
COPY manage.py ./
COPY portal portal
COPY tenants tenants
COPY devices devices
COPY migrationplan migrationplan
COPY templates templates
COPY static static
# The doctor compares the cluster with these.
COPY deploy/rbac deploy/rbac
COPY deploy/policies deploy/policies
# What to do about each code is shown in the product.
COPY docs/runbooks docs/runbooks
RUN SECRET_KEY=only-while-building PUBLIC_URL=https://localhost \
    /opt/berth/bin/python manage.py collectstatic --no-input --verbosity 0

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 65532 berth && useradd --uid 65532 --gid berth --no-create-home --shell /usr/sbin/nologin berth
COPY --from=build /opt/berth /opt/berth
COPY --from=build /srv/berth /srv/berth
WORKDIR /srv/berth
ENV PATH=/opt/berth/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=portal.settings
# Nothing below / is written: counts and beat's notes go to /run/berth, uploads to /tmp; mount both.
USER 65532:65532
EXPOSE 8000 9101
CMD ["uvicorn", "portal.asgi:application", "--host=0.0.0.0", "--port=8000", "--workers=2", "--no-access-log", "--timeout-graceful-shutdown=20"]
