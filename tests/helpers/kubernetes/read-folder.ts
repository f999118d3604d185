import { join } from 'node:path';
import { busUsers } from '../../../bus/nats/permissions.ts';
import { passwordVariableOf } from '../../../bus/nats/server-config.ts';
import { root } from '../deployment.ts';
import { podsOf, readManifests } from './read-manifests.ts';

export const folder = join(root, 'deploy/kubernetes');
export const manifests = readManifests(folder);
/** By the name of their container. */
export const pods = podsOf(manifests);
export const ofKind = (kind: string) => manifests.filter((one) => one.kind === kind);

/** @throws for an unknown name */
export function podOf(name: string) {
  const found = pods.get(name);
  if (found === undefined) throw new Error(`no pod has a container ${name}`);
  return found;
}

/** What secrets.sh prints for a file with these values, by the name of the Secret. */
export function secretsFrom(values: Readonly<Record<string, string>>): Map<string, Record<string, string>> {
  return new Map(
    [...pods.values()].map(({ container }) => {
      const keys = container.env.flatMap(({ valueFrom }) => (valueFrom !== undefined && 'secretKeyRef' in valueFrom ? [valueFrom.secretKeyRef] : []));
      const textOf = (key: string) => values[key === 'NATS_PASSWORD' ? passwordVariableOf(userOf(container.name)) : key] ?? storeUrls[key];
      return [container.name, Object.fromEntries(keys.flatMap(({ key }) => (textOf(key) === undefined ? [] : [[key, textOf(key) ?? '']])))];
    }),
  );
}

export const storeUrls: Record<string, string | undefined> = {
  DATABASE_URL: 'postgres://switchyard:s3cret@postgres.example.com:5432/switchyard?sslmode=verify-full',
  REDIS_URL: 'rediss://:s3cret@redis.example.com:6379',
};

function userOf(container: string) {
  const user = busUsers.find((one) => one === (container === 'streams' ? 'operator' : container));
  if (user === undefined) throw new Error(`${container} is no user of the broker`);
  return user;
}

/** The environment of a container, with the values of Secrets; settings that the ConfigMap may lack are absent. */
export function settingsOf(name: string, secrets: Map<string, Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    podOf(name).container.env.flatMap(({ name: variable, value, valueFrom }) => {
      if (value !== undefined) return [[variable, value]];
      if (valueFrom === undefined || !('secretKeyRef' in valueFrom)) return [];
      const { name: secret, key, optional } = valueFrom.secretKeyRef;
      const text = secrets.get(secret)?.[key];
      if (text === undefined && !optional) throw new Error(`${name} refers to ${key} of the Secret ${secret}, which has not got it`);
      return text === undefined ? [] : [[variable, text]];
    }),
  );
}
