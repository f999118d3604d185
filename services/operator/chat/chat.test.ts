import { expect, it } from 'vitest';
import type { FollowItem } from '#client/follow-item.ts';
import { ReplyPrinter } from './reply-printer.ts';

const common = { created_at: '2026-01-01T00:00:00.000Z', source: 'ai_agent', trace_id: 't', metadata: {} } as const;
const message = (id: string, text: string): FollowItem => ({ type: 'event', event: { ...common, kind: 'assistant_message', offset: 1, id, text } });
const delta = (messageId: string, seq: number, text: string): FollowItem => ({ type: 'delta', messageId, seq, text });
const snapshot = (messageId: string, text: string): FollowItem => ({ type: 'snapshot', messageId, seq: 9, text });

function printed(...items: FollowItem[]): string {
  let text = '';
  const printer = new ReplyPrinter((piece) => {
    text += piece;
  });
  for (const item of items) printer.take(item);
  return text;
}

it('prints a reply as it is written, and once', () => {
  expect(printed(delta('m', 1, 'He'), delta('m', 2, 'llo'), message('m', 'Hello'))).toBe('Hello\n');
});

it('prints the rest of a reply of which pieces were lost', () => {
  expect(printed(delta('m', 1, 'He'), snapshot('m', 'Hell'), message('m', 'Hello you'))).toBe('Hello you\n');
});

it('prints a reply that begins again on a new line', () => {
  expect(printed(delta('m', 1, 'Maybe'), snapshot('m', 'No'), message('m', 'No way'))).toBe('Maybe\nNo way\n');
});

it('marks a reply that was not sent, and prints the next one by itself', () => {
  expect(printed(delta('m', 1, 'He'), { type: 'reply-cancelled', messageId: 'm' }, message('n', 'Bye'))).toBe('He\n(not sent)\nBye\n');
});

it('prints what happens besides: preambles, tools, errors, lost connections', () => {
  const call = { tool_id: 'shop:find', arguments: {}, result: { data: null, metadata: {} } };
  const text = printed(
    { type: 'event', event: { ...common, kind: 'preamble', offset: 0, id: 'p', text: 'One moment' } },
    { type: 'event', event: { ...common, kind: 'tool', offset: 1, id: 't', tool_calls: [call] } },
    { type: 'event', event: { ...common, kind: 'status', offset: 2, id: 's', status: 'error', stage: null, error_detail: 'turn.timeout' } },
  );

  expect(text).toBe('(One moment)\n[shop:find]\nerror: turn.timeout\n');
});

it('gives a terminal no control characters of a message', () => {
  expect(printed(message('m', 'a\u001b[31mb\nc\u009b'))).toBe('a [31mb\nc \n');
});
