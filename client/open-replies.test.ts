import { expect, it } from 'vitest';
import { OpenReplies, type ReplyPiece } from './open-replies.ts';
import { message, status } from './test-support/scripted-fetch.ts';

const delta = (seq: number, text: string | null, messageId = 'm'): ReplyPiece => ({ kind: 'delta', messageId, seq, text });
const snapshot = (seq: number, text: string, messageId = 'm'): ReplyPiece => ({ kind: 'snapshot', messageId, seq, text });

it('drops a delta that continues a text which the reader does not have', () => {
  const replies = new OpenReplies();

  expect(replies.onPiece(delta(3, 'c'))).toBeNull();
  expect(replies.onPiece(snapshot(4, 'abcd'))).toEqual({ type: 'snapshot', messageId: 'm', seq: 4, text: 'abcd' });
  expect(replies.onPiece(delta(5, 'e'))).toEqual({ type: 'delta', messageId: 'm', seq: 5, text: 'e' });
});

it('drops deltas after a reconnect until the text is whole again', () => {
  const replies = new OpenReplies();
  replies.onPiece(delta(1, 'a'));
  replies.onDisconnect();

  expect(replies.onPiece(delta(3, 'c'))).toBeNull();
  expect(replies.onPiece(snapshot(3, 'abc'))).toMatchObject({ type: 'snapshot', text: 'abc' });
});

it('replaces the text of a reply that begins again on another connection', () => {
  const replies = new OpenReplies();
  replies.onPiece(delta(1, 'a'));
  replies.onDisconnect();

  expect(replies.onPiece(delta(1, 'again'))).toEqual({ type: 'snapshot', messageId: 'm', seq: 1, text: 'again' });
});

it('drops what comes of a reply after its message', () => {
  const replies = new OpenReplies();
  replies.onPiece(delta(1, 'a', 'evt_4'));

  expect(replies.onEvent(message(4))).toEqual([]);
  expect(replies.onPiece(snapshot(2, 'ab', 'evt_4'))).toBeNull();
  expect(replies.onPiece(delta(3, null, 'evt_4'))).toBeNull();
});

it('passes a cancellation on once, and only of a reply that the reader has', () => {
  const replies = new OpenReplies();
  replies.onPiece(delta(1, 'a'));

  expect(replies.onPiece(delta(2, null))).toEqual({ type: 'reply-cancelled', messageId: 'm' });
  expect(replies.onPiece(delta(2, null))).toBeNull();
  expect(replies.onPiece(delta(2, null, 'other'))).toBeNull();
});

it('cancels a reply whose turn ended while there was no connection', () => {
  const replies = new OpenReplies();
  replies.onPiece(delta(1, 'a', 'lost'));
  replies.onDisconnect();
  replies.onPiece(delta(1, 'b', 'current'));

  expect(replies.onEvent(status(3, 'processing'))).toEqual([]);
  expect(replies.onEvent({ ...status(4, 'ready'), source: 'customer_ui' })).toEqual([]);
  expect(replies.onEvent(status(5, 'ready'))).toEqual([{ type: 'reply-cancelled', messageId: 'lost' }]);
});
