import { z } from 'zod';
import { SECRET_REF } from '../contracts/manifest/secret-ref.ts';
import type { NamedDocuments } from './named-documents.ts';
import { formatPath } from './problems.ts';
import { type Environment, resolveKey, resolveSecret, variableOf } from './secret-ref.ts';

/**
 * Every credential, by its path below `agent_config`; `*` is each entry of a list. An unset variable fails the start, even in an optional
 * field. Webhook secrets are resolved at each delivery.
 */
const CREDENTIALS = {
  'runtime.api_key': 'at the start',
  'platform.public_key': 'at the start',
  'platform.secret_key': 'at the start',
  'llms.api_key': 'at the start',
  'search.password': 'at the start',
  'database.password': 'at the start',
  'mcps.*.api_key': 'at the start',
  'search.api_key': 'at the start',
  'traces.backend.api_key': 'at the start',
  'webhooks.*.secret_env': 'per delivery',
} as const satisfies Record<string, 'at the start' | 'per delivery'>;

export type Credential = keyof typeof CREDENTIALS;

const ALL = Object.keys(CREDENTIALS).filter((name): name is Credential => name in CREDENTIALS);

const REFUSED = 'deliveries are refused until it is';
/** Callers send it behind `Bearer `, which ends at white space. */
const AGENT_KEY: Credential = 'runtime.api_key';
const NOT_IN_BEARER = /[\s\p{Cc}]/u;

/**
 * Takes the unparsed manifest, so that errors elsewhere in it hide nothing.
 * @param used the credentials that this process needs
 * @returns one line for each variable that can't be used, is not set at the start, or not before deliveries, without the file's name
 */
export function checkCredentials(
  manifest: unknown,
  environment: Environment,
  used: readonly Credential[] = ALL,
): { problems: string[]; unset: string[]; warnings: string[] } {
  const problems: string[] = [];
  const unset: string[] = [];
  const warnings: string[] = [];
  for (const name of used) {
    const when = CREDENTIALS[name];
    for (const location of locationsAt(manifest, ['agent_config', ...name.split('.')])) {
      const fault = faultOf(name, location.value, environment);
      if (fault === null) continue;
      const line = `${formatPath(location.path)}: ${fault.text}`;
      if (when === 'per delivery') warnings.push(`${line}; ${REFUSED}`);
      else (fault.isUnset ? unset : problems).push(line);
    }
  }
  return { problems, unset, warnings };
}

/** Secrets of the routines' own webhooks. @returns warnings, each naming its file */
export function checkRoutineWebhooks({ routines }: NamedDocuments, environment: Environment): string[] {
  return routines.flatMap(({ file, document }) => {
    const webhook = document.kind === 'autonomous' ? document.autonomous.webhook : null;
    const fault = faultOf('webhooks.*.secret_env', webhook?.secret_env, environment);
    return fault === null ? [] : [`${file}: autonomous.webhook.secret_env: ${fault.text}; ${REFUSED}`];
  });
}

function faultOf(name: Credential, reference: unknown, environment: Environment): { text: string; isUnset: boolean } | null {
  if (typeof reference !== 'string' || !SECRET_REF.test(reference)) return null;
  const secret = name.endsWith('_key') ? resolveKey(reference, environment) : resolveSecret(reference, environment);
  const variable = `the environment variable ${variableOf(reference)}`;
  if (secret === null) return { text: `${variable} is not set`, isUnset: true };
  if (name !== AGENT_KEY || !NOT_IN_BEARER.test(secret)) return null;
  return { text: `${variable} has a blank or a control character in it, which a bearer token can't have`, isUnset: false };
}

interface Location {
  path: PropertyKey[];
  value: unknown;
}
const anyObject = z.record(z.string(), z.unknown());

function locationsAt(root: unknown, path: readonly string[]): Location[] {
  let locations: Location[] = [{ path: [], value: root }];
  for (const segment of path) locations = locations.flatMap((location) => below(location, segment));
  return locations;
}

function below({ path, value }: Location, segment: string): Location[] {
  if (segment === '*') return Array.isArray(value) ? value.map((entry: unknown, index) => ({ path: [...path, index], value: entry })) : [];
  return [{ path: [...path, segment], value: anyObject.safeParse(value).data?.[segment] }];
}
