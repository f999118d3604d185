import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Environment } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** A process on this machine answers at once. */
const ANSWER_MS = 2_000;

/** A server and the key that it takes. */
export interface Target {
  /** Without a slash at the end. */
  url: string;
  key: string;
  /** Of the header with the key; absent: `Bearer`. */
  scheme?: 'Bearer' | 'Basic';
}

/** A target, and what messages say of it. */
export interface FoundTarget extends Target {
  server: ServerName;
  /** Where the address is from, such as `--url`. */
  addressFrom: string;
  /** Where the key is from: an environment variable, or a file. */
  keyFrom: string;
  /** The settings of a valid key, for people. */
  keyVariables: string;
}

export interface TargetOptions {
  url?: string | undefined;
  keyFile?: string | undefined;
}

const servers = {
  agent: { field: 'agent_key', urlVariable: 'SWITCHYARD_AGENT_URL', keyVariable: 'AGENT_API_KEY' },
  router: { field: 'router_management_key', urlVariable: 'SWITCHYARD_ROUTER_URL', keyVariable: 'ROUTER_MANAGEMENT_KEY' },
} as const;
export type ServerName = keyof typeof servers;

/**
 * The server that a command talks to: of its options, else of the environment, else the one that `start` runs on `DATA_DIR`. Keys come from a file or the
 * environment alone: an argument is seen by every user of the machine.
 *
 * @throws `service.unreachable` when no server is named or runs; `config.invalid` for an address that is none; `request.unauthorized` without a key
 */
export async function findTarget(server: ServerName, { url, keyFile }: TargetOptions, environment: Environment): Promise<FoundTarget> {
  const { keyVariable, field } = servers[server];
  const address = await addressOf(server, url, environment);
  const stored = join(dataFolder(environment), 'keys.json');
  const given = environment[keyVariable] || null;
  const key = keyFile === undefined ? (given ?? (await storedKey(stored, field))) : await keyIn(keyFile, field);
  if (key === null)
    throw new SwitchyardError(
      'request.unauthorized',
      `there is no key for ${address.url}: set ${keyVariable}, name a file that has the key by --key-file, or set DATA_DIR to the folder of \`switchyard start\`, which has it in keys.json`,
    );
  return { server, ...address, key, keyFrom: keyFile ?? (given === null ? stored : keyVariable), keyVariables: `${keyVariable} to a key of this server` };
}

/** The router as a platform, with both of its keys. @throws as `findTarget` */
export async function findPlatform({ url, keyFile }: TargetOptions, environment: Environment): Promise<FoundTarget> {
  const address = await addressOf('router', url, environment);
  const { PLATFORM_PUBLIC_KEY: publicKey, PLATFORM_SECRET_KEY: secretKey } = environment;
  const both = keyFile === undefined ? (publicKey && secretKey ? `${publicKey}:${secretKey}` : null) : await keyIn(keyFile, 'platform_keys');
  if (both === null)
    throw new SwitchyardError(
      'request.unauthorized',
      'there are no keys of the platform: set PLATFORM_PUBLIC_KEY and PLATFORM_SECRET_KEY to those of the router, or name a file that has both by --key-file',
    );
  return {
    server: 'router',
    ...address,
    key: Buffer.from(both, 'utf8').toString('base64'),
    scheme: 'Basic',
    keyFrom: keyFile ?? 'PLATFORM_PUBLIC_KEY and PLATFORM_SECRET_KEY',
    keyVariables: 'PLATFORM_PUBLIC_KEY and PLATFORM_SECRET_KEY to those of the router',
  };
}

/** Without a slash at the end. @throws `service.unreachable` when no server is named or runs, `config.invalid` */
async function addressOf(name: ServerName, url: string | undefined, environment: Environment): Promise<{ url: string; addressFrom: string }> {
  const { urlVariable } = servers[name];
  if (url !== undefined) return { url: url.replace(/\/+$/, ''), addressFrom: '--url' };
  const named = environment[urlVariable];
  if (named) {
    const problem = addressProblem(named);
    if (problem !== null) throw new SwitchyardError('config.invalid', `${urlVariable}: ${problem}`);
    return { url: named.replace(/\/+$/, ''), addressFrom: urlVariable };
  }
  const folder = dataFolder(environment);
  const running = await runningServer(folder);
  const answering = running === null ? null : await firstToAnswer(running[name]);
  if (answering !== null) return { url: answering.replace(/\/+$/, ''), addressFrom: join(folder, 'running.json') };
  throw new SwitchyardError(
    'service.unreachable',
    `no server is named by --url or ${urlVariable}, and none runs on the data folder ${folder}: run \`switchyard start\`, set DATA_DIR to its folder, or name a server`,
  );
}

/** What is wrong with the address of a server; null: nothing. */
export function addressProblem(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return 'it must be an address such as http://127.0.0.1:8080';
  if (url.username !== '' || url.password !== '') return 'it must have no user and no password: keys are read from the environment or a file';
  return url.search === '' && url.hash === '' ? null : 'it must have neither a query nor a fragment';
}

export function dataFolder(environment: Environment): string {
  return resolve(environment['DATA_DIR'] || 'data');
}

/** The first one that answers, else the first one; null: there is none. A process of a cluster may have been killed. */
async function firstToAnswer(urls: readonly string[]): Promise<string | null> {
  for (const url of urls.length > 1 ? urls : []) {
    const request = fetch(`${url}/health/live`, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_MS) });
    const doesAnswer = await request.then(
      async ({ body }) => {
        await body?.cancel();
        return true;
      },
      () => false,
    );
    if (doesAnswer) return url;
  }
  return urls[0] ?? null;
}

interface Running {
  pid: number;
  isCluster: boolean;
  agent: string[];
  router: string[];
}

/** The addresses of running.json; null when none runs. */
export async function runningServer(folder: string): Promise<Running | null> {
  const facts = Object(await jsonIn(join(folder, 'running.json')));
  const [pid, agent, router] = [facts.pid, urlsOf(facts.agent), urlsOf(facts.router)];
  if (typeof pid !== 'number' || (agent.length === 0 && router.length === 0)) return null;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // It may run as another user.
    if (Object(error).code !== 'EPERM') return null;
  }
  return { pid, isCluster: facts.kind === 'cluster', agent, router };
}

function urlsOf(server: unknown): string[] {
  // A server of an earlier release names its only address.
  const { url, urls = [url] } = Object(server);
  return Array.isArray(urls) ? urls.filter((url) => typeof url === 'string') : [];
}

/** A file of one key, or one like keys.json. @throws `request.unauthorized` */
async function keyIn(path: string, field: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new SwitchyardError('request.unauthorized', `the key file ${path} can not be read (${Object(cause).code}): name one that this user may read`, {
      cause,
    });
  });
  const key = text.trimStart().startsWith('{') ? await storedKey(path, field) : text.trim();
  if (key === null || !/^[\x21-\x7e]+$/.test(key))
    throw new SwitchyardError('request.unauthorized', `${path} holds no key: it must have a field ${field}, or the key as its only line`);
  return key;
}

async function storedKey(path: string, field: string): Promise<string | null> {
  const key = Object(await jsonIn(path))[field];
  return typeof key === 'string' ? key : null;
}

async function jsonIn(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch {
    return null;
  }
}
