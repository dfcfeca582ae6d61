{{/* What all of Berth's Pods share. */}}
{{- define "berth.labels" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "berth.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "berth.env" -}}
- {name: DJANGO_SETTINGS_MODULE, value: portal.settings}
- {name: PUBLIC_URL, value: {{ .Values.publicUrl | quote }}}
- {name: ALLOWED_HOSTS, value: {{ join "," .Values.allowedHosts | quote }}}
- {name: CSRF_TRUSTED_ORIGINS, value: {{ .Values.publicUrl | quote }}}
- {name: BERTH_CLUSTER_NAME, value: {{ .Values.clusterName | quote }}}
- {name: BEHIND_TLS_PROXY, value: {{ gt (int .Values.trustedProxies) 0 | quote }}}
- {name: TRUSTED_PROXY_COUNT, value: {{ .Values.trustedProxies | quote }}}
- {name: SECURE_SSL_REDIRECT, value: "false"}
- {name: METRICS_HOST, value: "0.0.0.0"}
- {name: PROMETHEUS_MULTIPROC_DIR, value: /run/berth/metrics}
- {name: SECRET_KEY_FILE, value: /etc/berth/secret-key}
- {name: DATABASE_URL_FILE, value: /etc/berth/database-url}
- {name: VALKEY_URL_FILE, value: /etc/berth/valkey-url}
- {name: METRICS_TOKEN_FILE, value: /etc/berth/metrics-token}
{{- with (.Values.tracing).endpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- range $name, $key := .Values.secret.optional }}
- {name: {{ $name }}_FILE, value: /etc/berth/{{ $key }}}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "berth.pod" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
volumes:
  - name: secrets
    secret: {secretName: {{ .Values.secret.name }}, defaultMode: 0440}
  - name: run
    emptyDir: {medium: Memory, sizeLimit: 64Mi}
  - name: tmp
    emptyDir: {sizeLimit: 256Mi}
{{- end }}

{{- define "berth.container" -}}
image: {{ include "berth.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: secrets, mountPath: /etc/berth, readOnly: true}
  - {name: run, mountPath: /run/berth}
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "berth.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "berth.selector" . | nindent 8 }}
{{- end }}
