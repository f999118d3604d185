import { expect, it } from 'vitest';
import { attemptOf } from '#bus/messages/attempt-number.ts';
import { sseFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { chatCompletions } from '#shared/surfaces/chat-completions/surface.ts';
import { publishedOf } from './published-frames.ts';

it('what was shown is the content of one worker where two have the same delivery', async () => {
  const call = { callId: 'gen-gw1-01ARZ3NDEKTSV4RRFFQ69G5FAV-tag' } as RouterCall;
  const frame = (worker: number, seq: number, text: string) =>
    sseFrame(
      'm',
      { callId: call.callId, attempt: attemptOf(1, worker), seq },
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`,
    );
  const frames = [frame(7, 1, 'Hel'), frame(8, 1, 'Good'), frame(7, 2, 'lo'), frame(8, 2, ' day')];
  const published = await publishedOf({ replay: async () => frames }, { call, surface: chatCompletions, framesAt: 'tok.g.c' }, { isLastDelivery: false });

  expect(published).toMatchObject({ kind: 'content', shown: { answer: { textChars: 'Hello'.length } } });
});
