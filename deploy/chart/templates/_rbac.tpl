{{/* Binds a component's ClusterRole to its service account: (dict "root" $ "component" "extender") */}}
{{- define "slurm-bridge.clusterRoleBinding" -}}
{{- $name := printf "%s-%s" (include "slurm-bridge.name" .root) .component -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "slurm-bridge.labels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $name }}}
subjects:
{{- if eq .component "controllers" }} {{ include "slurm-bridge.controllersSubjects" .root }}
{{- else }}
- {kind: ServiceAccount, name: {{ $name }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}
{{- end }}

{{/* One lease, and that of slurmctld's script for who asks Slurm: (dict "root" $ "component" "extender" "lease" "name" "creates" true) */}}
{{- define "slurm-bridge.leaseRole" -}}
{{- $name := printf "%s-%s" (include "slurm-bridge.name" .root) .component -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}-lease
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "slurm-bridge.labels" . | nindent 4 }}
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ .lease }}{{ if and .creates (include "slurm-bridge.hasEscrow" .root) }}, slurm-bridge-escrow{{ end }}]
  verbs: [get, update]
{{- if .creates }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]  # a name cannot be asked for at CREATE
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}-lease
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "slurm-bridge.labels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }}-lease}
subjects:
{{- if eq .component "controllers" }} {{ include "slurm-bridge.controllersSubjects" .root }}
{{- else }}
- {kind: ServiceAccount, name: {{ $name }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}
{{- end }}
