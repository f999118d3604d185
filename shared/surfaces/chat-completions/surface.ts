import type { ModelRequest, Surface } from '../surface.ts';
import { toCompletion } from './completion.ts';
import { errorChunkOf } from './error-chunk.ts';
import { ChunkWriter } from './part-writer.ts';

/** POST /chat/completions. */
export const chatCompletions: Surface<ModelRequest> = {
  toModelRequest: (body) => body,
  partWriter: (head) => new ChunkWriter(head),
  wholeBody: (answer, head, usage, error) => JSON.stringify(toCompletion(answer, head, usage, error)),
  errorEvent: (body, head) => `data: ${JSON.stringify(errorChunkOf(body, head))}\n\n`,
};
