import type { PluginSettings } from '#shared/config/plugin-settings.ts';
import { type Environment, resolveSecret, variableOf } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { type OcrEngine, openOcrEngine } from './files/ocr-engine.ts';
import { openModerator } from './moderation/moderator.ts';
import type { Moderator } from './moderation/types.ts';
import { openSearchEngine, type SearchEngine } from './web/search-engine.ts';

/** What the plugins of a configuration use. Null: the plugin is not configured. */
export interface PluginEngines {
  readonly moderation: Moderator | null;
  readonly web: SearchEngine | null;
  /** Of files. */
  readonly ocr: OcrEngine | null;
}

interface OpenedEngines extends PluginEngines {
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}

export const noEngines: PluginEngines = { moderation: null, web: null, ocr: null };

interface EnginesDeps {
  settings: PluginSettings;
  environment: Environment;
  connectTimeoutMs: number;
}

/** Connections are opened by the first requests. @throws `config.invalid` naming a missing or wrong variable */
export function openEngines({ settings, environment, connectTimeoutMs }: EnginesDeps): OpenedEngines {
  const outbound = openOutbound(environment);
  const deps = { outbound, connectTimeoutMs, secret: (reference: string) => secretOf(reference, environment) };
  const moderation = settings.moderation === undefined ? null : openModerator(settings.moderation, deps);
  const web = settings.web === undefined ? null : openSearchEngine(settings.web, deps);
  const ocr = settings.file_parser === undefined ? null : openOcrEngine(settings.file_parser.ocr, deps);
  return {
    moderation,
    web,
    ocr,
    close: async () => {
      await Promise.all([moderation?.close(), web?.close(), ocr?.close()]);
    },
  };
}

function secretOf(reference: string, environment: Environment): string {
  const value = resolveSecret(reference, environment)?.trim() ?? '';
  if (value === '') throw new SwitchyardError('config.invalid', `the engine of a plugin needs the environment variable ${variableOf(reference)}`);
  return value;
}
