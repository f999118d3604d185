import type { Surface } from '#shared/surfaces/surface.ts';
import { surfaces } from '#shared/surfaces/surfaces.ts';

/** The API that events are of, where the id of their call alone is known. Null where they do not show it, as an error or the end mark. */
export function surfaceOfEvents(sse: Uint8Array): Surface | null {
  for (const surface of surfaces.values()) if (surface.hasWritten?.(sse) === true) return surface;
  return null;
}
