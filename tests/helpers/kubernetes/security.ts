import type { Container, PodSpec } from 'kubernetes-types/core/v1.js';

/** The user `node` of the image, by its number: a name can't be checked against `runAsNonRoot`. */
const USER = 1_000;

/** What the profile `restricted` of Kubernetes asks for, and no token of the cluster's API. */
export const restrictedPod: Pick<PodSpec, 'automountServiceAccountToken' | 'enableServiceLinks' | 'securityContext'> = {
  automountServiceAccountToken: false,
  // Variables such as NATS_PORT would be read as settings.
  enableServiceLinks: false,
  securityContext: { runAsNonRoot: true, runAsUser: USER, runAsGroup: USER, fsGroup: USER, seccompProfile: { type: 'RuntimeDefault' } },
};

export const restrictedContainer: Pick<Container, 'securityContext'> = {
  securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
};
