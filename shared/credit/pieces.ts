import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { messagesBeyondText } from '../prompts/deferred-messages.ts';

/** The pictures and recordings of a request. */
export function piecesIn(request: Pick<ChatRequest, 'messages'>): { images: number; recordings: number; recordingChars: number } {
  const pieces = { images: 0, recordings: 0, recordingChars: 0 };
  for (const { content } of messagesBeyondText(request)) {
    if (!Array.isArray(content)) continue;
    for (const item of content) {
      if (item.type === 'image_url') pieces.images += 1;
      if (item.type !== 'input_audio') continue;
      pieces.recordings += 1;
      pieces.recordingChars += item.input_audio.data.length;
    }
  }
  return pieces;
}
