import { chatCompletions } from './chat-completions/surface.ts';
import { embeddings } from './embeddings/surface.ts';
import { parts } from './parts/surface.ts';
import { responses } from './responses/surface.ts';
import type { Surface } from './surface.ts';

/** By the name that a call's message has. */
export const surfaces: ReadonlyMap<string, Surface> = new Map([
  ['chat-completions', chatCompletions],
  ['embeddings', embeddings],
  ['parts', parts],
  ['responses', responses],
]);
