import type { EnvVar } from 'kubernetes-types/core/v1.js';
import { variablesIn } from '../compose-file.ts';
import { serviceOf } from '../deployment.ts';
import { BROKERS, brokerUrls, SETTINGS } from './names.ts';

/** Where the stores are is another matter in a cluster than in the compose file, and these addresses have passwords in them. */
const STORE_URLS = ['DATABASE_URL', 'REDIS_URL'];
/** Settings that may have a credential in them. */
const MAYBE_SECRET = ['OTEL_EXPORTER_OTLP_HEADERS', 'SMTP_URL'];

/**
 * The variables of a service of the compose file, for a container: secrets by reference to the Secret that is named after the service, settings with a
 * default by reference to one ConfigMap that may lack them, all others as they are.
 * @param others in place of those of the compose file
 */
export function containerEnvironment(service: string, others: Readonly<Record<string, string>> = {}): EnvVar[] {
  const known = { ...others, NATS_URL: brokerUrls(), NATS_REPLICAS: String(BROKERS) };
  const variables = Object.entries(serviceOf(service).environment).flatMap(([name, text]) => (name in known ? [] : [variable(service, name, text)]));
  return [...Object.entries(known).map(([name, value]) => ({ name, value })), ...variables];
}

function variable(service: string, name: string, text: string): EnvVar {
  if (STORE_URLS.includes(name)) return { name, valueFrom: { secretKeyRef: { name: service, key: name } } };
  const [used] = variablesIn(text);
  if (used === undefined) return { name, value: text };
  if (used.fallback === null) return { name, valueFrom: { secretKeyRef: { name: service, key: name } } };
  if (MAYBE_SECRET.includes(name)) return { name, valueFrom: { secretKeyRef: { name: service, key: name, optional: true } } };
  return { name, valueFrom: { configMapKeyRef: { name: SETTINGS, key: name, optional: true } } };
}
