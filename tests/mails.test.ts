import { describe, expect, it, vi } from 'vitest';
import type { Queryable } from '../shared/storage/database.ts';
import { eventually } from './helpers/eventually.ts';
import { LABEL, mailerFor, PASSWORD, PLACE, useMailQueue } from './helpers/mail-queue.ts';
import { smtpError, startSmtpReceiver } from './helpers/smtp-receiver.ts';

const SECRET = `sk-sy-v1-${'0123456789abcdef'.repeat(4)}`;
const HASH = 'f'.repeat(64);
const WAIT = { timeout: 60_000, interval: 10 };

const queue = useMailQueue();

describe('a mail of the queue', () => {
  it('DESIGN 11: is sent once, with the label of the key and without its secret or hash, and is marked as sent', async () => {
    const receiver = await queue.receiver();
    await queue.add('mail_1');
    queue.start(mailerFor(receiver));

    await eventually(async () => (await queue.row())?.is_sent);
    const [mail] = receiver.received;
    expect(mail).toMatchObject({ from: 'keys@switchyard.example', to: ['owner@example.com'], messageId: '<mail_1@switchyard.example>' });
    const source = (mail?.source ?? '').replaceAll('=\r\n', '');
    expect(source).toMatch(/^Subject: Your API key sk-sy-v1-012\.\.\.def was exposed\r$/m);
    expect(source).toMatch(/^From: Key watch <keys@switchyard\.example>\r$/m);
    for (const part of [LABEL, 'Shop', PLACE, 'Revoke the key', 'Create a replacement', '2026-11-22 12:00 UTC']) expect(source).toContain(part);
    for (const secret of [SECRET, SECRET.slice(20, 60), HASH]) expect(source).not.toContain(secret);
    expect(receiver.logins).toEqual([{ user: 'mailer', password: PASSWORD }]);
    expect(await queue.row()).toMatchObject({ attempts: 1, is_given_up: false, last_error: null });
  });

  it('cannot add headers, recipients or lines of SMTP, whatever its row says', async () => {
    const receiver = await queue.receiver();
    await queue.add('mail_1', { name: 'a\r\n.\r\nMAIL FROM:<x@example.com>\r\nBcc: b@example.com', place: '\r\n\r\nBcc: c@example.com\n.\n名' });
    await queue.database.query(`update mails set key_label = E'label\\r\\nBcc: d@example.com'`);
    queue.start(mailerFor(receiver));

    await eventually(async () => (await queue.row())?.is_sent);
    expect(receiver.received).toHaveLength(1);
    const [headers = ''] = (receiver.received[0]?.source ?? '').split('\r\n\r\n');
    expect(headers).not.toMatch(/^bcc/im);
    expect(receiver.received[0]?.to).toEqual(['owner@example.com']);
  });

  it('is given up when its row does not have one address', async () => {
    const receiver = await queue.receiver();
    await queue.add('mail_1', { recipient: 'owner@example.com, other@example.com' });
    queue.start(mailerFor(receiver));

    await eventually(async () => (await queue.row())?.is_given_up);
    expect(receiver.connections).toBe(0);
  });

  it.each([
    ['recipient', { onRcptTo: (_: unknown, __: unknown, done: (error: Error) => void) => done(smtpError(550, 'no such user owner@example.com')) }],
    [
      'text',
      {
        onData: (stream: { resume(): void; on(event: string, then: () => void): void }, _: unknown, done: (error: Error) => void) => {
          stream.on('end', () => done(smtpError(554, 'refused by policy')));
          stream.resume();
        },
      },
    ],
  ])('is given up at once when the server refuses its %s for good, and an error line says so', async (_, options) => {
    const receiver = await queue.receiver(options);
    await queue.add('mail_1');
    queue.start(mailerFor(receiver));

    await eventually(async () => (await queue.row())?.is_given_up);
    expect(await queue.row()).toMatchObject({ attempts: 1, is_sent: false, last_error: expect.stringContaining('55') });
    await vi.waitFor(
      () => expect(queue.lines.filter(({ level }) => level === 'error')).toMatchObject([{ fields: { mail_id: 'mail_1', key_label: LABEL, attempt: 1 } }]),
      WAIT,
    );
    expect(JSON.stringify(queue.lines)).not.toContain('owner@example.com');
  });

  it('is tried again after a temporary refusal, with a back-off and the same bytes', async () => {
    let refusals = 0;
    const receiver = await queue.receiver({
      onMail: () => {
        refusals += 1;
        if (refusals <= 2) throw smtpError(451, 'try again later');
      },
    });
    await queue.add('mail_1');
    queue.start(mailerFor(receiver));

    for (const [attempts, seconds] of [
      [1, 60],
      [2, 120],
    ] as const) {
      // Neither the lease nor the time that was set below.
      await vi.waitFor(async () => {
        const row = await queue.row();
        expect(row).toMatchObject({ attempts, is_given_up: false, last_error: expect.stringContaining('451') });
        expect(row?.retry_seconds).toBeGreaterThan(0);
        expect(row?.retry_seconds).toBeLessThanOrEqual(seconds);
      }, WAIT);
      await queue.makeDue();
    }
    await eventually(async () => (await queue.row())?.is_sent);
    expect(queue.lines.flatMap(({ fields }) => fields['retry_after_ms'] ?? [])).toEqual([60_000, 120_000]);
    expect(receiver.received).toHaveLength(3);
    expect(new Set(receiver.received.map(({ source }) => source)).size).toBe(1);
  });

  it('is given up after the last attempt', async () => {
    const receiver = await queue.receiver({ onRcptTo: (_, __, done) => done(smtpError(451, 'try again later')) });
    await queue.add('mail_1');
    queue.start(mailerFor(receiver), { limits: { attempts: 3, retryMs: 1 } });

    await eventually(async () => (await queue.row())?.is_given_up);
    expect(await queue.row()).toMatchObject({ attempts: 3 });
    expect(queue.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  });

  it.each([
    ['refuses the login', { onAuth: (_: unknown, __: unknown, done: (error: Error) => void) => done(smtpError(535, `wrong: ${PASSWORD} ${btoa(PASSWORD)}`)) }],
    ['refuses the sender', { onMailFrom: (_: unknown, __: unknown, done: (error: Error) => void) => done(smtpError(550, 'not from here')) }],
  ])('is tried again, not given up, when the server %s, and no line has the password', async (_, options) => {
    const receiver = await queue.receiver(options);
    await queue.add('mail_1');
    queue.start(mailerFor(receiver));

    await vi.waitFor(
      async () => expect(await queue.row()).toMatchObject({ attempts: 1, is_given_up: false, last_error: expect.stringMatching(/5[35]/) }),
      WAIT,
    );
    for (const text of [JSON.stringify(queue.lines), (await queue.row())?.last_error]) {
      for (const secret of [PASSWORD, btoa(PASSWORD), btoa(`\0mailer\0${PASSWORD}`)]) expect(text).not.toContain(secret);
    }
  });

  it('is tried again when the server hangs', async () => {
    let hang = () => {};
    const hung = new Promise<void>((resolve) => {
      hang = resolve;
    });
    const receiver = await queue.receiver({ onMail: () => hung });
    await queue.add('mail_1');
    queue.start(mailerFor(receiver), { limits: { sendMs: 300 } });

    await vi.waitFor(async () => expect(await queue.row()).toMatchObject({ attempts: 1, is_sent: false, last_error: expect.any(String) }), WAIT);
    hang();
  });

  it('is tried again when no server answers', async () => {
    const receiver = await startSmtpReceiver();
    await receiver.close();
    await queue.add('mail_1');
    queue.start(mailerFor(receiver));

    await vi.waitFor(async () => expect(await queue.row()).toMatchObject({ attempts: 1, last_error: expect.stringContaining('ECONNREFUSED') }), WAIT);
  });

  it('DESIGN 11: that was sent by a process which died before it was marked is sent again, with the same Message-ID', async () => {
    const receiver = await queue.receiver();
    await queue.add('mail_1');
    let sent = 0;
    const dying: Queryable = {
      query: (statement, parameters) => {
        if (typeof statement === 'string' || statement.name !== 'mails-sent') return queue.database.query(statement, parameters);
        sent += 1;
        return Promise.reject(new Error('the process is dead'));
      },
    };
    const first = queue.start(mailerFor(receiver), { on: dying });
    await vi.waitFor(() => expect(sent).toBe(1), WAIT);
    await first.stop();
    queue.start(mailerFor(receiver));
    expect(await queue.row()).toMatchObject({ attempts: 1, is_sent: false, is_given_up: false });
    await queue.makeDue();

    await eventually(async () => (await queue.row())?.is_sent);
    expect(receiver.received.map(({ messageId }) => messageId)).toEqual(['<mail_1@switchyard.example>', '<mail_1@switchyard.example>']);
  });

  it('is sent by one of two processes', async () => {
    const receiver = await queue.receiver();
    for (let mail = 0; mail < 20; mail += 1) await queue.add(`mail_${mail}`);
    for (const _ of [1, 2]) queue.start(mailerFor(receiver));

    await eventually(async () => (await queue.database.query('select 1 from mails where sent_at is null')).rowCount === 0);
    expect(receiver.received.map(({ messageId }) => messageId)).toHaveLength(20);
    expect(new Set(receiver.received.map(({ messageId }) => messageId)).size).toBe(20);
  });

  it('of which a later process has begun an attempt is not changed by the one before', async () => {
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const receiver = await queue.receiver({ onMail: () => answered.then(() => Promise.reject(smtpError(451, 'try again later'))) });
    await queue.add('mail_1');
    const first = queue.start(mailerFor(receiver), { limits: { pollMs: 10 } });
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), WAIT);
    await queue.database.query(`update mails set attempts = 2, last_error = 'of the later one'`);

    answer();
    await vi.waitFor(() => expect(queue.lines.filter(({ level }) => level === 'warn')).toHaveLength(1), WAIT);
    await first.stop();
    expect(await queue.row()).toMatchObject({ attempts: 2, last_error: 'of the later one' });
  });
});
