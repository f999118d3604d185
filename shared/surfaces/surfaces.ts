import { chatCompletions } from './chat-completions/surface.ts';
import { embeddings } from './embeddings/surface.ts';
import { parts } from './parts/surface.ts';
import { responses } from './responses/surface.ts';
import type { Surface } from './surface.ts';

/** Of calls of actors that ask for no model: their texts are moderated. Workers that do not know it leave them to others. */
export const MODERATION_SURFACE = 'moderation';

/** By the name that a call's message has. */
export const surfaces: ReadonlyMap<string, Surface> = new Map([
  ['chat-completions', chatCompletions],
  ['embeddings', embeddings],
  // Nothing is written: the result is the command alone.
  [MODERATION_SURFACE, parts],
  ['parts', parts],
  ['responses', responses],
]);
