import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { parseConfig as actorHost } from '../../services/actor-host/config.ts';
import { parseConfig as agentGateway } from '../../services/agent-gateway/config.ts';
import { parseConfig as effectWorker } from '../../services/effect-worker/config.ts';
import { parseConfig as routerGateway } from '../../services/router-gateway/config.ts';
import { parseConfig as routerWorker } from '../../services/router-worker/config.ts';
import type { Environment } from '../../shared/config/secret-ref.ts';

/** How each service reads its environment. */
export const settingsReaders = {
  'router-gateway': routerGateway,
  'agent-gateway': agentGateway,
  'actor-host': actorHost,
  'router-worker': routerWorker,
  'effect-worker': (environment: Environment) => effectWorker(environment, []),
} as const;

export type ServiceName = keyof typeof settingsReaders;

/** Not services of their own: processes that start several of them, and the command line for operators. */
const OTHER_PROGRAMS = ['standalone', 'router', 'agent', 'operator'];

/** The folders of services/ that are processes of a deployment. */
export function deployables(root: string): string[] {
  return readdirSync(join(root, 'services'))
    .filter((name) => existsSync(join(root, 'services', name, 'main.ts')) && !OTHER_PROGRAMS.includes(name))
    .sort();
}

/** Whether a service's configuration depends on a variable: another value makes another configuration, or is refused. */
export function readsVariable(service: ServiceName, environment: Readonly<Record<string, string>>, name: string): boolean {
  const read = settingsReaders[service];
  const before = JSON.stringify(read(environment));
  try {
    return JSON.stringify(read({ ...environment, [name]: `changed-${environment[name]}` })) !== before;
  } catch {
    return true;
  }
}

interface AgentFiles {
  routerConfigPath: string;
  manifestPath: string;
}

/**
 * The variables that a service needs for the credentials that the router's configuration and the manifest name. Which of these a service
 * uses is said by its main.ts, in the calls that load the two, and is read from there.
 */
export function credentialVariables(root: string, service: ServiceName, { routerConfigPath, manifestPath }: AgentFiles): string[] {
  const source = readFileSync(join(root, 'services', service, 'main.ts'), 'utf8');
  const file = z.looseObject({ keys: z.array(z.looseObject({})) }).parse(parse(readFileSync(routerConfigPath, 'utf8')));
  // Calls need no key for management.
  const router: unknown = { ...file, callKeys: file.keys.filter(({ management }) => management !== true) };
  const manifest: unknown = parse(readFileSync(manifestPath, 'utf8'));
  const references = [
    ...routerCredentials(source).flatMap((path) => valuesAt(router, path)),
    ...manifestCredentials(source).flatMap((path) => valuesAt(manifest, `agent_config.${path}`)),
  ];
  return [...new Set(references.flatMap(variablesBelow))].sort();
}

function routerCredentials(source: string): string[] {
  if (!source.includes('openRouterConfig(')) return [];
  const secrets = /routerConfigPath, environment, use: \{ secrets: '(keys|calls)'[^}]*\}/.exec(source)?.[1];
  if (secrets === undefined) throw new Error('a main.ts says in another way than before which secrets of the router’s configuration it uses');
  return secrets === 'keys' ? ['keys.*.key'] : ['callKeys.*.key', 'providers.*.api_key'];
}

function manifestCredentials(source: string): string[] {
  if (!source.includes('loadBundle(')) return [];
  const call = /loadBundle\((\{[^}]*\})\)/.exec(source)?.[1];
  if (call === undefined) throw new Error('a main.ts loads the manifest in another way than before');
  if (!call.includes('credentials')) return ['*'];
  const list = (/credentials: \[([^\]]*)\]/.exec(call) ?? /const credentials = \[([^\]]*)\]/.exec(source))?.[1];
  if (list === undefined) throw new Error('a main.ts says in another way than before which credentials of the manifest it uses');
  return [...list.matchAll(/'([^']+)'/g)].map(([, path = '']) => path);
}

/** `*` is each entry of a list or each field of an object; what is not there has no values. */
function valuesAt(root: unknown, path: string): unknown[] {
  return path.split('.').reduce<unknown[]>((values, segment) => values.flatMap((value) => entriesOf(value, segment)), [root]);
}

const fields = z.union([z.array(z.unknown()).transform((list) => ({ ...list })), z.record(z.string(), z.unknown())]);

function entriesOf(value: unknown, segment: string): unknown[] {
  const entries = Object.entries(fields.safeParse(value).data ?? {});
  return entries.filter(([name]) => segment === '*' || name === segment).map(([, entry]) => entry);
}

function variablesBelow(value: unknown): string[] {
  if (typeof value === 'string') return [...value.matchAll(/^\$\{(\w+)\}$/g)].map(([, name = '']) => name);
  return entriesOf(value, '*').flatMap(variablesBelow);
}
