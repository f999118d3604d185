import { type ChatRequest, chatRequest } from '../../contracts/router/chat-request.ts';
import { isValidChatRequest } from '../../contracts/router/valid-chat-request.ts';
import type { RequestForm, Surface } from '../surface.ts';
import { toCompletion } from './completion.ts';
import { errorChunkOf } from './error-chunk.ts';
import { ChunkWriter } from './part-writer.ts';
import { partsInChunk } from './parts-in.ts';

const ID = Buffer.from('data: {"id":"');
const OBJECT = Buffer.from('","object":"chat.completion.chunk"');

const request: RequestForm<ChatRequest> = {
  path: '/chat/completions',
  schema: chatRequest,
  isValid: isValidChatRequest,
  toModelRequest: (body) => body,
};

export const chatCompletions: Surface = {
  request,
  partWriter: (head, answer) => new ChunkWriter(head, answer),
  partsIn: partsInChunk,
  hasWritten,
  wholeBody: (answer, head, usage, error) => JSON.stringify(toCompletion(answer, head, usage, error)),
  errorEvent: (body, head) => `data: ${JSON.stringify(errorChunkOf(body, head))}\n\n`,
};

/** Behind an id, which the gateway has added. */
function hasWritten(sse: Uint8Array): boolean {
  const bytes = Buffer.from(sse.buffer, sse.byteOffset, sse.byteLength);
  const at = bytes.indexOf(ID);
  if (at < 0) return false;
  const idEnd = bytes.indexOf('"', at + ID.length);
  return idEnd >= 0 && bytes.subarray(idEnd, idEnd + OBJECT.length).equals(OBJECT);
}
