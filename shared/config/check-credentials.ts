import { z } from 'zod';
import { SECRET_REF } from '../contracts/manifest/secret-ref.ts';
import type { NamedDocuments } from './named-documents.ts';
import { formatPath } from './problems.ts';
import { type Environment, resolveSecret, variableOf } from './secret-ref.ts';

/**
 * Every credential of a manifest, below `agent_config`; `*` is each entry of a list. What a required one opens can't be done without,
 * so a missing variable stops the start. What an optional one opens is asked without a key. Secrets of webhooks are read at each delivery.
 */
const CREDENTIALS = {
  'runtime.api_key': 'required',
  'platform.public_key': 'required',
  'platform.secret_key': 'required',
  'llms.api_key': 'required',
  'search.password': 'required',
  'database.password': 'required',
  'mcps.*.api_key': 'optional',
  'search.api_key': 'optional',
  'traces.backend.api_key': 'optional',
  'webhooks.*.secret_env': 'per delivery',
} as const satisfies Record<string, 'required' | 'optional' | 'per delivery'>;

/** A credential by its place below `agent_config`. */
export type Credential = keyof typeof CREDENTIALS;

const ALL = Object.keys(CREDENTIALS).filter((name): name is Credential => name in CREDENTIALS);

const CONSEQUENCES = {
  optional: 'requests go out without a key',
  'per delivery': 'deliveries are refused until it is',
};

/**
 * Looks at the manifest as it was read, so that errors in other places hide nothing.
 * @param used those that this process has a use for; the variables of the others need not be set here
 * @returns one line for each variable that is not set, without the file
 */
export function checkCredentials(manifest: unknown, environment: Environment, used: readonly Credential[] = ALL): { problems: string[]; warnings: string[] } {
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const name of used) {
    const when = CREDENTIALS[name];
    for (const place of placesAt(manifest, ['agent_config', ...name.split('.')])) {
      const missing = missingVariable(place.value, environment);
      if (missing === null) continue;
      const line = `${formatPath(place.path)}: the environment variable ${missing} is not set`;
      if (when === 'required') problems.push(line);
      else warnings.push(`${line}; ${CONSEQUENCES[when]}`);
    }
  }
  return { problems, warnings };
}

/** The routines' own webhooks. @returns warnings, each naming its file */
export function checkRoutineWebhooks({ routines }: NamedDocuments, environment: Environment): string[] {
  return routines.flatMap(({ file, document }) => {
    const webhook = document.kind === 'autonomous' ? document.autonomous.webhook : null;
    const missing = missingVariable(webhook?.secret_env, environment);
    if (missing === null) return [];
    return [`${file}: autonomous.webhook.secret_env: the environment variable ${missing} is not set; ${CONSEQUENCES['per delivery']}`];
  });
}

function missingVariable(reference: unknown, environment: Environment): string | null {
  if (typeof reference !== 'string' || !SECRET_REF.test(reference)) return null;
  return resolveSecret(reference, environment) === null ? variableOf(reference) : null;
}

interface Place {
  path: PropertyKey[];
  value: unknown;
}
const anyObject = z.record(z.string(), z.unknown());

function placesAt(root: unknown, path: readonly string[]): Place[] {
  let places: Place[] = [{ path: [], value: root }];
  for (const segment of path) places = places.flatMap((place) => below(place, segment));
  return places;
}

function below({ path, value }: Place, segment: string): Place[] {
  if (segment === '*') return Array.isArray(value) ? value.map((entry: unknown, index) => ({ path: [...path, index], value: entry })) : [];
  return [{ path: [...path, segment], value: anyObject.safeParse(value).data?.[segment] }];
}
