import { describe, expect, it, vi } from 'vitest';
import { mailLimits, retryAfter } from '../services/router-worker/mails/mails.ts';
import { smtpMailer } from '../services/router-worker/mails/smtp-mailer.ts';
import { selfMadeCertificate } from '../shared/http/test-support/self-made-certificate.ts';
import type { Queryable } from '../shared/storage/database.ts';
import { eventually } from './helpers/eventually.ts';
import { mailConfigFor, mailerFor, useMailQueue } from './helpers/mail-queue.ts';

const WAIT = { timeout: 60_000, interval: 10 };

const queue = useMailQueue();

describe('the sender of mails', () => {
  it('without settings leaves mails waiting, and one line says so', async () => {
    const waiting: string[] = [];
    const counted: Queryable = {
      query: (statement, parameters) => {
        if (typeof statement !== 'string') waiting.push(statement.name);
        return queue.database.query(statement, parameters);
      },
    };
    const mails = queue.start(null, { on: counted });
    await vi.waitFor(() => expect(waiting.length).toBeGreaterThan(2), WAIT);
    expect(queue.lines).toEqual([]);
    await queue.add('mail_1');
    await vi.waitFor(() => expect(queue.lines).not.toEqual([]), WAIT);
    const looks = waiting.length;
    await vi.waitFor(() => expect(waiting.length).toBeGreaterThan(looks + 5), WAIT);
    await mails.stop();

    expect(queue.lines).toEqual([{ level: 'warn', message: 'mails wait, because SMTP_URL and MAIL_FROM are not set', fields: { mails: 1 } }]);
    expect(await queue.row()).toMatchObject({ attempts: 0, is_sent: false, is_given_up: false });
  });

  it('sends what waited once it has settings', async () => {
    const receiver = await queue.receiver();
    await queue.add('mail_1');
    queue.start(smtpMailer(mailConfigFor(receiver, { login: false })));

    await eventually(async () => (await queue.row())?.is_sent);
    expect(receiver.logins).toEqual([]);
  });

  it('goes on after an error of the database', async () => {
    const receiver = await queue.receiver();
    let faults = 3;
    const faulty: Queryable = { query: (...all) => (faults-- > 0 ? Promise.reject(new Error('away')) : queue.database.query(...all)) };
    queue.start(mailerFor(receiver), { on: faulty });
    await queue.add('mail_1');

    await eventually(async () => (await queue.row())?.is_sent);
  });

  it('deletes mails a month after they were sent or given up, and no others', async () => {
    for (const id of ['sent', 'given-up', 'recent', 'waiting']) await queue.add(id);
    await queue.database.query(`update mails set sent_at = now() - interval '31 days' where id = 'sent'`);
    await queue.database.query(`update mails set given_up_at = now() - interval '31 days' where id = 'given-up'`);
    await queue.database.query(`update mails set sent_at = now() - interval '29 days' where id = 'recent'`);
    await queue.database.query(`update mails set created_at = now() - interval '90 days' where id = 'waiting'`);
    queue.start(null, { limits: { sweepEveryMs: 0 } });

    await vi.waitFor(
      async () => expect((await queue.database.query('select id from mails order by id')).rows).toEqual([{ id: 'recent' }, { id: 'waiting' }]),
      WAIT,
    );
  });

  it('sends a password over TLS alone: with STARTTLS, or from the first byte', async () => {
    const { key, certificate: cert } = selfMadeCertificate(['localhost']);
    for (const secure of [false, true]) {
      const receiver = await queue.receiver({ key, cert, secure, disabledCommands: [] });
      const config = mailConfigFor(receiver);
      const mailer = smtpMailer({ ...config, server: { ...config.server, host: 'localhost', isSecure: secure, needsStartTls: !secure } }, { ca: cert });
      const mails = queue.start(mailer);
      await queue.add(`mail_${secure}`);
      await eventually(async () => (await queue.row(`mail_${secure}`))?.is_sent);
      await mails.stop();
      expect(receiver.logins).toHaveLength(1);
    }
  });

  it.each([
    ['without STARTTLS', { disabledCommands: ['STARTTLS'] }],
    ['whose certificate nothing vouches for', { disabledCommands: [] }],
  ])('sends no password to a server %s', async (_, options) => {
    const receiver = await queue.receiver(options);
    const config = mailConfigFor(receiver);
    queue.start(smtpMailer({ ...config, server: { ...config.server, needsStartTls: true } }));
    await queue.add('mail_1');

    await vi.waitFor(async () => expect(await queue.row()).toMatchObject({ attempts: 1, is_given_up: false, last_error: expect.any(String) }), WAIT);
    expect([receiver.connections, receiver.logins, receiver.received]).toEqual([1, [], []]);
  });
});

it('waits twice as long after each failure, at most an hour', () => {
  expect([1, 2, 3, 6, 7, 30].map((attempts) => retryAfter(attempts, mailLimits) / 60_000)).toEqual([1, 2, 4, 32, 60, 60]);
});
