import { hash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';
import { fixed, type Living } from './living.ts';
import type { RouterConfig } from './router-config.ts';

/** Distinguishes the configurations of a deployment, and is short in log lines. */
const HASH_DIGITS = 12;
/** Of a configuration that was made in code. */
const NO_HASH = '';

/** A configuration that was checked, and what its content is recognised by. */
export interface LoadedRouterConfig {
  config: RouterConfig;
  /** The same in all processes and releases that have read the same content, whatever its layout and comments. */
  hash: string;
}

/** @param value as read from the file, before defaults: these depend on the release, and on the kind of process */
export function loadedRouterConfig(config: RouterConfig, value: unknown): LoadedRouterConfig {
  return { config, hash: hash('sha256', canonicalJson(value)).slice(0, HASH_DIGITS) };
}

/** Where it is no living one it never changes, and has no hash that calls could name. */
export type GivenRouterConfig = RouterConfig | Living<LoadedRouterConfig>;

export function livingRouterConfig(given: GivenRouterConfig): Living<LoadedRouterConfig> {
  return 'current' in given ? given : fixed({ config: given, hash: NO_HASH });
}
