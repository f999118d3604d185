import type { ModerationSettings } from '#shared/config/plugin-settings.ts';
import type { EngineDeps } from '../engine-client.ts';
import { openEndpointModerator } from './endpoint-moderator.ts';
import { patternModerator } from './pattern-moderator.ts';
import type { OpenedModerator } from './types.ts';

/** Patterns first: they cost no request. */
export function openModerator(settings: ModerationSettings, deps: EngineDeps): OpenedModerator {
  const { name, endpoint: address, patterns } = settings;
  const matched = patterns.length === 0 ? null : patternModerator(patterns);
  const endpoint = address === undefined ? null : openEndpointModerator(name, address, deps);
  return {
    name,
    async flaggedIn(texts, signal, param) {
      const flagged = (await matched?.(texts, signal, param)) ?? null;
      return flagged ?? (await endpoint?.flaggedIn(texts, signal, param)) ?? null;
    },
    close: async () => {
      await endpoint?.close();
    },
  };
}
