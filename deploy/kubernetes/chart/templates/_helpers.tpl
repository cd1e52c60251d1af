{{- define "gpu-scheduler.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/part-of: gpu-scheduler
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}
{{- define "gpu-scheduler.tlsSecret" -}}
{{ .Values.tls.secretName | default "gpu-scheduler-tls" }}
{{- end }}
{{- define "gpu-scheduler.host" -}}
gpu-scheduler.{{ .Release.Namespace }}.svc
{{- end }}
