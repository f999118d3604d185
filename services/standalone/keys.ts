import { createHmac, randomBytes } from 'node:crypto';
import { chmod, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Environment } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { givenSettings } from './given-settings.ts';

/** Environment variable → field in the key file, of the keys that are generated when not given. */
export const GENERATED_KEYS = { ROUTER_API_KEY: 'router_key', AGENT_API_KEY: 'agent_key' } as const;
export type KeyName = keyof typeof GENERATED_KEYS;
const NAMES = ['ROUTER_API_KEY', 'AGENT_API_KEY'] as const satisfies readonly KeyName[];
export const KEYS_FILE = 'keys.json';

const callersKey = z.string().min(16).optional();
const keyFile = z.object({ router_key: callersKey, agent_key: callersKey, house_secret: z.string().min(32) });
type KeyFile = z.infer<typeof keyFile>;

export interface Keys {
  path: string;
  /** Keys generated and stored by this start, by field. */
  made: ReadonlyMap<string, string>;
  routerKey: string;
  agentKey: string;
  /** Signs generation ids and commands. Never shown. */
  houseSecret: string;
}

/** Keys that are not stored, for a test cluster. Those of the environment win. */
export function newKeys(environment: Environment): Omit<Keys, 'path' | 'made'> {
  return givenOr(freshKeys(), environment);
}

/**
 * The data folder's keys, generated at the first start. Those of the environment win and are not stored.
 * @param requested keys to generate and store; the others get a value for this process alone
 */
export async function loadKeys(dataFolder: string, environment: Environment, requested: readonly KeyName[] = NAMES): Promise<Keys> {
  const path = join(dataFolder, KEYS_FILE);
  const fresh = freshKeys();
  const stored = await readKeys(path);
  const isMade = (name: KeyName) => requested.includes(name) && !environment[name] && stored?.[GENERATED_KEYS[name]] === undefined;
  const added = NAMES.filter(isMade).map((name) => [GENERATED_KEYS[name], fresh[GENERATED_KEYS[name]]] as const);
  const keyFile = { ...Object.fromEntries(added), ...stored, house_secret: stored?.house_secret ?? fresh.house_secret };
  if (stored === null || added.length > 0) await writeKeys(path, keyFile);
  return { path, made: new Map(added), ...givenOr(keyFile, environment, fresh) };
}

function givenOr(keyFile: KeyFile, environment: Environment, fresh = freshKeys()): Omit<Keys, 'path' | 'made'> {
  return {
    routerKey: environment['ROUTER_API_KEY'] || (keyFile.router_key ?? fresh.router_key),
    agentKey: environment['AGENT_API_KEY'] || (keyFile.agent_key ?? fresh.agent_key),
    houseSecret: environment['HOUSE_SECRET'] || keyFile.house_secret,
  };
}

/**
 * The environment for references in configurations: the process's own, else the generated keys. The platform's key pair is derived from the secret: a
 * standalone deployment is its own platform.
 */
export function withKeys(environment: Environment, keys: Omit<Keys, 'path' | 'made'>): Environment {
  const derived = (purpose: string) => createHmac('sha256', keys.houseSecret).update(purpose).digest('hex');
  return {
    ROUTER_API_KEY: keys.routerKey,
    AGENT_API_KEY: keys.agentKey,
    PLATFORM_PUBLIC_KEY: `pk-sy-v1-${derived('platform public key')}`,
    PLATFORM_SECRET_KEY: `sk-sy-platform-v1-${derived('platform secret key')}`,
    ...givenSettings(environment),
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
  // A copy or restore may have widened its permissions.
  await chmod(path, 0o600);
  try {
    return keyFile.parse(JSON.parse(text));
  } catch {
    // No `cause`: it would quote the text, which may be a key.
    throw new SwitchyardError('config.invalid', `${path} is damaged: restore it, or delete it to have new keys made`);
  }
}

function freshKeys() {
  const secret = () => randomBytes(32).toString('hex');
  return { router_key: `sk-sy-v1-${secret()}`, agent_key: `sk-sy-agent-v1-${secret()}`, house_secret: secret() };
}

async function writeKeys(path: string, keys: KeyFile): Promise<void> {
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600, flush: true });
  await rename(unfinished, path);
}
