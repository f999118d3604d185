import type { AnswerImage } from '../../contracts/router/chat-completion.ts';

export function imageOf(url: string): AnswerImage {
  return { type: 'image_url', image_url: { url } };
}
