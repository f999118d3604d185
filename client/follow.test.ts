import { describe, expect, it } from 'vitest';
import type { FollowItem } from './follow-item.ts';
import { collect, hanging, isEventAt, json, lost, message, piece, scripted, sse, status, stream } from './test-support/scripted-fetch.ts';

const COMMENT = ': connected\n\n';
const SOON = { streamAgainMs: 0, maxStreamAgainMs: 0 };
const refusal = (code: number) => json({ error: 'refused', code: 'refused' }, code);
const offsets = (items: readonly FollowItem[]) => items.flatMap((item) => (item.type === 'event' ? [item.event.offset] : []));
const connections = (items: readonly FollowItem[]) =>
  items.flatMap((item) => (item.type === 'connection' ? [`${item.state} ${item.transport}${item.error === null ? '' : `: ${item.error.code}`}`] : []));

describe('a session that is followed by a stream', () => {
  it('gives each event once, in order, over connections that break, end and fail', async () => {
    const { client, sent } = scripted(
      stream([COMMENT, sse(message(0)), sse(message(1))], 'broken'),
      lost,
      stream([COMMENT, sse(message(1)), sse(message(2))], 'ended'),
      refusal(503),
      stream([COMMENT, sse(message(3)), sse(message(2))], 'broken'),
      stream([COMMENT, sse(message(4))]),
    );

    const items = await collect(client.events.follow('ses_1'), isEventAt(4));

    expect(offsets(items)).toEqual([0, 1, 2, 3, 4]);
    expect(sent.map(({ headers }) => headers.get('last-event-id'))).toEqual([null, '1', '1', '2', '2', '3']);
    expect(sent.every(({ headers }) => headers.get('accept') === 'text/event-stream')).toBe(true);
  });

  it('loses nothing of an event that a connection broke off in the middle of', async () => {
    const whole = sse(message(0));
    const { client } = scripted(stream([COMMENT, whole.slice(0, 40)], 'broken'), stream([COMMENT, whole]));

    expect(offsets(await collect(client.events.follow('ses_1'), isEventAt(0)))).toEqual([0]);
  });

  it('begins behind the event that the reader has', async () => {
    const { client, sent } = scripted(stream([COMMENT, sse(message(8))]));

    await collect(client.events.follow('ses_1', { after: 7 }), isEventAt(8));

    expect(sent[0]?.path).toBe('/sessions/ses_1/events?min_offset=8');
    expect(sent[0]?.headers.get('last-event-id')).toBe('7');
  });

  it('passes events of unknown kinds on, and ignores unknown events of the stream', async () => {
    const unknown = { ...message(0), kind: 'survey', question: 'How?' };
    const { client } = scripted(stream([COMMENT, 'event: usage\ndata: {"calls":1}\n\n', `id: 0\nevent: survey\ndata: ${JSON.stringify(unknown)}\n\n`]));

    expect(await collect(client.events.follow('ses_1'), isEventAt(0))).toEqual([{ type: 'event', event: unknown }]);
  });

  it('gives the pieces of a reply, and its text anew after a reconnect', async () => {
    const first = stream([COMMENT, piece('delta', { message_id: 'm', seq: 1, text: 'He' }), piece('delta', { message_id: 'm', seq: 2, text: 'l' })], 'broken');
    const second = stream([
      COMMENT,
      piece('snapshot', { message_id: 'm', seq: 1, text: 'Hell' }),
      piece('delta', { message_id: 'm', seq: 2, text: 'o' }),
      sse({ ...message(0, 'Hello'), id: 'm' }),
    ]);
    const { client } = scripted(first, second);

    const items = await collect(client.events.follow('ses_1'), isEventAt(0));

    expect(items.slice(0, -1)).toEqual([
      { type: 'delta', messageId: 'm', seq: 1, text: 'He' },
      { type: 'delta', messageId: 'm', seq: 2, text: 'l' },
      { type: 'snapshot', messageId: 'm', seq: 1, text: 'Hell' },
      { type: 'delta', messageId: 'm', seq: 2, text: 'o' },
    ]);
  });

  it('cancels a reply whose turn ended while there was no connection', async () => {
    const first = stream([COMMENT, piece('delta', { message_id: 'm', seq: 1, text: 'He' })], 'broken');
    const { client } = scripted(first, stream([COMMENT, sse(status(0, 'cancelled'))]));

    const items = await collect(client.events.follow('ses_1'), isEventAt(0));

    expect(items[1]).toEqual({ type: 'reply-cancelled', messageId: 'm' });
  });

  it('connects anew after silence, which a connection that is half open never ends', async () => {
    const { clientWith, sent } = scripted(stream([COMMENT, sse(message(0))]), stream([COMMENT, sse(message(1))]));

    const items = await collect(clientWith({ silenceMs: 20 }).events.follow('ses_1'), isEventAt(1), true);

    expect(offsets(items)).toEqual([0, 1]);
    expect(connections(items)).toContain('waiting stream: client.timeout');
    expect(sent[0]?.signal.aborted).toBe(true);
  });

  it('says what becomes of its connection', async () => {
    const { client } = scripted(stream([COMMENT, sse(message(0))], 'ended'), stream([COMMENT, sse(message(1))]));

    const items = await collect(client.events.follow('ses_1'), isEventAt(1), true);

    expect(connections(items)).toEqual(['connecting stream', 'open stream', 'waiting stream', 'connecting stream', 'open stream']);
  });

  it.each([400, 401, 403, 404])('fails with %i, which repeating does not mend', async (code) => {
    const { client, sent } = scripted(stream([COMMENT, sse(message(0))], 'ended'), refusal(code));

    await expect(collect(client.events.follow('ses_1'), () => false)).rejects.toMatchObject({ status: code });
    expect(sent).toHaveLength(2);
  });

  it('fails at first for an address of another kind of server', async () => {
    const moved = scripted(() => new Response(null, { status: 308, headers: { location: 'https://agent.test' } }));
    await expect(collect(moved.client.events.follow('ses_1'), () => false)).rejects.toMatchObject({ code: 'client.redirected' });

    const page = scripted(() => new Response('<html>', { headers: { 'content-type': 'text/html' } }));
    await expect(collect(page.client.events.follow('ses_1'), () => false)).rejects.toMatchObject({ code: 'client.bad_answer' });
  });

  it('ends without an error with its signal: while it waits, reads, or pauses', async () => {
    for (const answer of [hanging, stream([COMMENT]), lost]) {
      const leaving = new AbortController();
      const { clientWith, sent } = scripted(answer);
      const items = clientWith({ retryMs: 60_000, maxRetryMs: 60_000 }).events.follow('ses_1', { signal: leaving.signal });
      const all: string[] = [];
      for await (const item of items) {
        all.push(item.type);
        setTimeout(() => leaving.abort(), 1);
      }
      expect(all).not.toEqual([]);
      expect(sent).toHaveLength(1);
    }
  });

  it('closes its connection when the reader leaves', async () => {
    const { client, sent } = scripted(stream([COMMENT, sse(message(0))]));

    await collect(client.events.follow('ses_1'), isEventAt(0));

    expect(sent[0]?.signal.aborted).toBe(true);
  });
});

describe('a session that is followed without streams', () => {
  it('is polled when the answer is no stream, page by page, each event once', async () => {
    const { client, sent } = scripted(json([message(0)]), json([message(0), message(1)]), json([message(2)]));

    const items = await collect(client.events.follow('ses_1'), isEventAt(2), true);

    expect(offsets(items)).toEqual([0, 1, 2]);
    expect(sent.slice(1).map(({ path }) => path)).toEqual([
      '/sessions/ses_1/events?min_offset=0&limit=200&wait_for_data=0',
      '/sessions/ses_1/events?min_offset=2&limit=200',
    ]);
    expect(connections(items)).toEqual(['connecting stream', 'waiting stream: client.no_stream', 'connecting polling', 'open polling']);
  });

  it('is polled when a proxy holds the stream back', async () => {
    const { clientWith } = scripted(hanging, json([message(0)]));

    const items = await collect(clientWith({ firstByteMs: 10 }).events.follow('ses_1'), isEventAt(0), true);

    expect(connections(items)).toContain('waiting stream: client.no_stream');
    expect(connections(items).at(-1)).toBe('open polling');
  });

  it('is polled after two streams that were refused, and streamed again later', async () => {
    const { clientWith, sent } = scripted(refusal(503), refusal(503), json([message(0)]), stream([COMMENT, sse(message(1))]));

    const items = await collect(clientWith(SOON).events.follow('ses_1'), isEventAt(1), true);

    expect(offsets(items)).toEqual([0, 1]);
    expect(connections(items).at(-1)).toBe('open stream');
    expect(sent).toHaveLength(4);
  });

  it('is polled again after one stream that fails, and streamed after polls that fail', async () => {
    const { clientWith } = scripted(json({}), json([message(0)]), lost, lost, stream([COMMENT, sse(message(1))]));

    const items = await collect(clientWith(SOON).events.follow('ses_1'), isEventAt(1), true);

    expect(connections(items).filter((state) => state.startsWith('connecting'))).toEqual([
      'connecting stream',
      'connecting polling',
      'connecting stream',
      'connecting polling',
      'connecting stream',
    ]);
  });

  it('pauses as long as x-polling-backoff says', async () => {
    const { client, sent } = scripted(json([], 200, { 'x-polling-backoff': '1' }), json([message(0)]));
    const beganAtMs = performance.now();

    await collect(client.events.follow('ses_1', { onlyPolling: true }), isEventAt(0));

    expect(performance.now() - beganAtMs).toBeGreaterThan(900);
    expect(sent.map(({ headers }) => headers.get('accept'))).toEqual(['application/json', 'application/json']);
  });

  it('reads on at once where a page was full', async () => {
    const { client } = scripted(json([message(0)], 200, { 'x-polling-backoff': '0' }), json([message(1)], 200, { 'x-polling-backoff': '0' }));

    expect(offsets(await collect(client.events.follow('ses_1', { onlyPolling: true }), isEventAt(1)))).toEqual([0, 1]);
  });
});
