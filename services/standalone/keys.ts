import { createHmac, randomBytes } from 'node:crypto';
import { chmod, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Environment } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

const keyFile = z.object({ router_key: z.string().min(16), agent_key: z.string().min(16), house_secret: z.string().min(32) });
type KeyFile = z.infer<typeof keyFile>;

export interface Keys {
  /** The file that holds them. */
  path: string;
  routerKey: string;
  agentKey: string;
  /** Signs the ids that this house mints. Never shown to anybody. */
  houseSecret: string;
}

/** Keys for a house that keeps nothing, such as a cluster of tests. Those given by the environment win. */
export function newKeys(environment: Environment): Omit<Keys, 'path'> {
  return givenOr(freshKeys(), environment);
}

/** The keys of this data folder: made at the first start, the same ever after. Those given by the environment win and are not written down. */
export async function loadKeys(dataFolder: string, environment: Environment): Promise<Keys> {
  const path = join(dataFolder, 'keys.json');
  const stored = (await readKeys(path)) ?? (await makeKeys(path));
  return { path, ...givenOr(stored, environment) };
}

function givenOr(made: KeyFile, environment: Environment): Omit<Keys, 'path'> {
  return {
    routerKey: environment['ROUTER_API_KEY'] || made.router_key,
    agentKey: environment['AGENT_API_KEY'] || made.agent_key,
    houseSecret: environment['HOUSE_SECRET'] || made.house_secret,
  };
}

/**
 * The environment that documents resolve their references in: the process's own, and where that is silent the generated keys. The
 * platform's pair is derived, since the platform of a standalone house is the house itself.
 */
export function withKeys(environment: Environment, keys: Omit<Keys, 'path'>): Environment {
  const derived = (purpose: string) => createHmac('sha256', keys.houseSecret).update(purpose).digest('hex');
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''));
  return {
    ROUTER_API_KEY: keys.routerKey,
    AGENT_API_KEY: keys.agentKey,
    PLATFORM_PUBLIC_KEY: `pk-sy-v1-${derived('platform public key')}`,
    PLATFORM_SECRET_KEY: `sk-sy-platform-v1-${derived('platform secret key')}`,
    ...given,
  };
}

async function readKeys(path: string): Promise<KeyFile | null> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return null;
    throw new SwitchyardError('config.invalid', `${path} can not be read`, { cause });
  }
  // A copy or a restore may have opened it to others.
  await chmod(path, 0o600);
  try {
    return keyFile.parse(JSON.parse(text));
  } catch {
    // The cause would quote what it could not read, and that may be a key.
    throw new SwitchyardError('config.invalid', `${path} is damaged: restore it, or delete it to have new keys made`);
  }
}

function freshKeys(): KeyFile {
  const secret = () => randomBytes(32).toString('hex');
  return { router_key: `sk-sy-v1-${secret()}`, agent_key: `sk-sy-agent-v1-${secret()}`, house_secret: secret() };
}

async function makeKeys(path: string): Promise<KeyFile> {
  const keys = freshKeys();
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600, flush: true });
  await rename(unfinished, path);
  return keys;
}
