import { canonicalJson } from '#shared/config/canonical-json.ts';
import type { PluginSettings } from '#shared/config/plugin-settings.ts';
import { type Environment, resolveKey, variableOf } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { SharedOpened } from '../shared-opened.ts';
import type { EngineDeps } from './engine-client.ts';
import { type OcrEngine, type OpenedOcrEngine, openOcrEngine } from './files/ocr-engine.ts';
import { openModerator } from './moderation/moderator.ts';
import type { Moderator, OpenedModerator } from './moderation/types.ts';
import { type OpenedSearchEngine, openSearchEngine, type SearchEngine } from './web/search-engine.ts';

/** What the plugins of a configuration use. Null: the plugin is not configured. */
export interface PluginEngines {
  readonly moderation: Moderator | null;
  readonly web: SearchEngine | null;
  /** Of files. */
  readonly ocr: OcrEngine | null;
}

/** Those of all configurations of a process: a block that is the same keeps its engine. */
export interface SharedEngines {
  readonly moderation: SharedOpened<OpenedModerator>;
  readonly web: SharedOpened<OpenedSearchEngine>;
  readonly ocr: SharedOpened<OpenedOcrEngine>;
}

export function sharedEngines(): SharedEngines {
  return { moderation: new SharedOpened(), web: new SharedOpened(), ocr: new SharedOpened() };
}

interface OpenedEngines extends PluginEngines {
  /** Closes all connections, also those in use, but for those of engines that others share. Once. */
  close(): Promise<void>;
}

export const noEngines: PluginEngines = { moderation: null, web: null, ocr: null };

interface EnginesDeps {
  settings: PluginSettings;
  environment: Environment;
  connectTimeoutMs: number;
  /** Absent: there are no other configurations. */
  shared?: SharedEngines | undefined;
}

/** Connections are opened by the first requests. @throws `config.invalid` naming a missing or wrong variable */
export function openEngines({ settings, environment, connectTimeoutMs, shared = sharedEngines() }: EnginesDeps): OpenedEngines {
  const outbound = openOutbound(environment);
  const deps = { outbound, connectTimeoutMs, secret: (reference: string) => secretOf(reference, environment) };
  const releases: (() => Promise<void>)[] = [];
  const close = async () => {
    await Promise.all(releases.splice(0).map((release) => release()));
  };
  /** Null: the configuration has no such block. */
  function acquired<Settings, Engine extends { close(): Promise<void> }>(
    block: Settings | undefined,
    engines: SharedOpened<Engine>,
    open: (settings: Settings, deps: EngineDeps) => Engine,
  ): Engine | null {
    if (block === undefined) return null;
    const key = canonicalJson([block, connectTimeoutMs]);
    const engine = engines.acquire(key, () => open(block, deps));
    releases.push(() => engines.release(key));
    return engine;
  }
  try {
    const moderation = acquired(settings.moderation, shared.moderation, openModerator);
    const web = acquired(settings.web, shared.web, openSearchEngine);
    const ocr = acquired(settings.file_parser?.ocr, shared.ocr, openOcrEngine);
    return { moderation, web, ocr, close };
  } catch (error) {
    void close();
    throw error;
  }
}

function secretOf(reference: string, environment: Environment): string {
  const value = resolveKey(reference, environment);
  if (value === null) throw new SwitchyardError('config.invalid', `the engine of a plugin needs the environment variable ${variableOf(reference)}`);
  return value;
}
