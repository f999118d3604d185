import { chatCompletions } from '#shared/surfaces/chat-completions/surface.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import { surfaces } from '#shared/surfaces/surfaces.ts';

/** The API that events are of, where the id of their call alone is known. Chats where they do not show it. */
export function surfaceOfEvents(sse: Uint8Array): Surface {
  for (const surface of surfaces.values()) if (surface.hasWritten?.(sse) === true) return surface;
  return chatCompletions;
}
