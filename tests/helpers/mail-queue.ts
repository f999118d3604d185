import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { mailLimits, startMails } from '../../services/router-worker/mails/mails.ts';
import { type Mailer, smtpMailer } from '../../services/router-worker/mails/smtp-mailer.ts';
import { recordedLog } from '../../services/router-worker/test-support/recorded-log.ts';
import { type MailConfig, mailConfigOf, mailFrom, smtpUrl } from '../../shared/config/mail-settings.ts';
import type { Database, Queryable } from '../../shared/storage/database.ts';
import { openTestDatabase } from '../../shared/storage/pglite/test-support/open-test-database.ts';
import { noMetrics } from '../../shared/telemetry/metrics.ts';
import { type SmtpReceiver, startSmtpReceiver } from './smtp-receiver.ts';

export const PASSWORD = 'pass/word+hunter2';
export const LABEL = 'sk-sy-v1-012...def';
export const PLACE = 'https://code.example/acme/.env';

interface Row {
  attempts: number;
  last_error: string | null;
  is_sent: boolean;
  is_given_up: boolean;
  retry_seconds: number;
}

type Limits = { readonly [Name in keyof typeof mailLimits]: number };

/** The queue of mails in a database of the test file, emptied before each test; senders and receivers end with their test. */
export function useMailQueue() {
  let database: Database;
  let recorded: ReturnType<typeof recordedLog>;
  const closing: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database.close());
  beforeEach(async () => {
    recorded = recordedLog();
    await database.query('truncate mails');
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  return {
    get database(): Queryable {
      return database;
    },
    get lines() {
      return recorded.lines;
    },
    async add(id: string, fields: { recipient?: string; name?: string; place?: string } = {}): Promise<void> {
      const { recipient = 'owner@example.com', name = 'Shop', place = PLACE } = fields;
      await database.query(
        `insert into mails (id, kind, recipient, key_id, key_name, key_label, exposed_at, exposed_where)
          values ($1, 'key-exposed', $2, 'key_1', $3, $4, '2026-11-22T12:00:00Z', $5)`,
        [id, recipient, name, LABEL, `${place}#${id}`],
      );
    },
    async row(id = 'mail_1'): Promise<Row | undefined> {
      const { rows } = await database.query<Row>(
        `select attempts, last_error, sent_at is not null as is_sent, given_up_at is not null as is_given_up,
          extract(epoch from next_attempt_at - now())::float8 as retry_seconds from mails where id = $1`,
        [id],
      );
      return rows[0];
    },
    makeDue: () => database.query('update mails set next_attempt_at = now()'),
    async receiver(options: Parameters<typeof startSmtpReceiver>[0] = {}): Promise<SmtpReceiver> {
      const receiver = await startSmtpReceiver(options);
      closing.push(receiver.close);
      return receiver;
    },
    /** Looks at the queue all the time. */
    start(mailer: Mailer | null, { limits = {}, on = database }: { limits?: Partial<Limits>; on?: Queryable } = {}): { stop(): Promise<void> } {
      const mails = startMails({ database: on, mailer, log: recorded.log, metrics: noMetrics, limits: { ...mailLimits, pollMs: 10, ...limits } });
      let stopping: Promise<void> | null = null;
      const stop = () => {
        stopping ??= mails.stop();
        return stopping;
      };
      closing.push(stop);
      return { stop };
    },
  };
}

export function mailConfigFor({ host, port }: { host: string; port: number }, { login = true } = {}): MailConfig {
  const credentials = login ? `mailer:${encodeURIComponent(PASSWORD)}@` : '';
  const server = smtpUrl.parse(`smtp://${credentials}${host}:${port}`);
  const config = mailConfigOf({ SMTP_URL: server, MAIL_FROM: mailFrom.parse('Key watch <keys@switchyard.example>') });
  if (config === null) throw new Error('no settings');
  return config;
}

export const mailerFor = (server: { host: string; port: number }) => smtpMailer(mailConfigFor(server));
