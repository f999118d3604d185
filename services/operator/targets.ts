import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Environment } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** A server and the key that it takes. */
export interface Target {
  /** Without a slash at the end. */
  url: string;
  key: string;
  /** Of the header with the key; absent: `Bearer`. */
  scheme?: 'Bearer' | 'Basic';
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
 * The server that a command talks to: of its options, else of the environment, else the one that `npm start` runs on `DATA_DIR`. Keys come from a file or the
 * environment alone: an argument is seen by every user of the machine.
 *
 * @throws `service.unreachable` when no server is named or runs; `request.unauthorized` without a key
 */
export async function findTarget(name: ServerName, { url, keyFile }: TargetOptions, environment: Environment): Promise<Target> {
  const { keyVariable, field } = servers[name];
  const address = await addressOf(name, url, environment);
  const folder = dataFolder(environment);
  const key = keyFile === undefined ? environment[keyVariable] || (await storedKey(join(folder, 'keys.json'), field)) : await keyIn(keyFile, field);
  if (key === null) throw new SwitchyardError('request.unauthorized', `there is no key: set ${keyVariable}, or name a file that has it by --key-file`);
  return { url: address, key };
}

/** The router as a platform, with both of its keys. @throws as `findTarget` */
export async function findPlatform({ url, keyFile }: TargetOptions, environment: Environment): Promise<Target> {
  const address = await addressOf('router', url, environment);
  const { PLATFORM_PUBLIC_KEY: publicKey, PLATFORM_SECRET_KEY: secretKey } = environment;
  const both = keyFile === undefined ? (publicKey && secretKey ? `${publicKey}:${secretKey}` : null) : await keyIn(keyFile, 'platform_keys');
  if (both === null)
    throw new SwitchyardError(
      'request.unauthorized',
      'there are no keys of the platform: set PLATFORM_PUBLIC_KEY and PLATFORM_SECRET_KEY to those of the router, or name a file that has both by --key-file',
    );
  return { url: address, key: Buffer.from(both, 'utf8').toString('base64'), scheme: 'Basic' };
}

/** Without a slash at the end. @throws `service.unreachable` when no server is named or runs */
async function addressOf(name: ServerName, url: string | undefined, environment: Environment): Promise<string> {
  const { urlVariable } = servers[name];
  const folder = dataFolder(environment);
  const address = url ?? (environment[urlVariable] || null) ?? (await runningServer(folder))?.[name] ?? null;
  if (address === null)
    throw new SwitchyardError(
      'service.unreachable',
      `no server is named by --url or ${urlVariable}, and none runs on the data folder ${folder}: start one, or name it`,
    );
  return address.replace(/\/+$/, '');
}

export function dataFolder(environment: Environment): string {
  return resolve(environment['DATA_DIR'] || 'data');
}

/** The addresses of running.json; null when none runs. */
export async function runningServer(folder: string): Promise<{ pid: number; agent: string; router: string } | null> {
  const facts = Object(await jsonIn(join(folder, 'running.json')));
  const [pid, agent, router] = [facts.pid, Object(facts.agent).url, Object(facts.router).url];
  if (typeof pid !== 'number' || typeof agent !== 'string' || typeof router !== 'string') return null;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // It may run as another user.
    if (Object(error).code !== 'EPERM') return null;
  }
  return { pid, agent, router };
}

/** A file of one key, or one like keys.json. @throws `request.unauthorized` */
async function keyIn(path: string, field: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new SwitchyardError('request.unauthorized', `the key file ${path} can not be read`, { cause });
  });
  const key = text.trimStart().startsWith('{') ? await storedKey(path, field) : text.trim();
  if (key === null || !/^[\x21-\x7e]+$/.test(key))
    throw new SwitchyardError('request.unauthorized', `${path} holds no key: it has neither a ${field} nor one line of text`);
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
