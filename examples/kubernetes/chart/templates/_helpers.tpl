{{/* Labels of the pods of this release. */}}
{{- define "plimsoll-agents.labels" -}}
app.kubernetes.io/name: plimsoll-agents
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
