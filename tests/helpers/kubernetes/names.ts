import type { ObjectMeta } from 'kubernetes-types/meta/v1.js';
import { packageFile } from '../deployment.ts';

/** Addresses that the autoscaler uses have it in them, so it is fixed. */
export const NAMESPACE = 'switchyard';
export const IMAGE = `switchyard:${packageFile.version}`;
export const BROKER = 'nats';
/** Odd, and the number of replicas of each stream. */
export const BROKERS = 3;
export const brokerPorts = { client: 4222, cluster: 6222, monitor: 8222 } as const;
/** ConfigMap of the settings that have a default. */
export const SETTINGS = 'settings';

const NAME = 'app.kubernetes.io/name';

export function labelsOf(name: string): Record<string, string> {
  return { [NAME]: name };
}

export function metadataOf(name: string, of = name): ObjectMeta {
  return { name, namespace: NAMESPACE, labels: { ...labelsOf(of), 'app.kubernetes.io/part-of': NAMESPACE } };
}

/** The addresses of all brokers, for `NATS_URL`. */
export function brokerUrls(): string {
  return Array.from({ length: BROKERS }, (_, index) => `nats://${BROKER}-${index}.${BROKER}:${brokerPorts.client}`).join(',');
}
