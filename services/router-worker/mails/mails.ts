import { pauseFor } from '#bus/pause.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { type MailRow, MailRows } from './mail-rows.ts';
import type { Mailer } from './smtp-mailer.ts';

const MINUTE_MS = 60_000;

/** Every limit of sending mails. Tests pass smaller ones. */
export const mailLimits = {
  /** Between two looks at the queue. */
  pollMs: 5_000,
  /** Connections to the mail server of one process. */
  atOnce: 5,
  /** One attempt, from the first byte to the last, however slowly the server answers. */
  sendMs: MINUTE_MS,
  /** An attempt and storing its outcome. A mail of a process that died is sent again after it. */
  leaseMs: 5 * MINUTE_MS,
  /** For the outcome to be stored while the database is away; then the mail is sent again. */
  storeMs: 2 * MINUTE_MS,
  /** After the first failure; doubled after each. */
  retryMs: MINUTE_MS,
  longestRetryMs: 60 * MINUTE_MS,
  /** A day of them, at least. */
  attempts: 30,
  /** At a stop, for attempts in progress: one that is cut off is repeated, and the mail may arrive twice. */
  stopMs: 5_000,
  /** Mails that are sent or given up are kept for 30 days. */
  keptMs: 30 * 24 * 60 * MINUTE_MS,
  sweepEveryMs: 10 * MINUTE_MS,
  sweptAtOnce: 1_000,
} as const;

type MailLimits = { readonly [Name in keyof typeof mailLimits]: number };

interface MailsDeps {
  database: Queryable;
  /** Null: no mail server is configured, and mails wait. */
  mailer: Mailer | null;
  log: Log;
  metrics: Metrics;
  limits?: MailLimits;
}

/**
 * Sends the mails of the queue, at least once each: a mail whose process dies between sending it and storing that is sent again, with the same Message-ID.
 * After a failure with a back-off; a mail that its server refuses for good is given up, and so is one after the last attempt. Any number of processes may
 * run it.
 */
export function startMails(deps: MailsDeps): { stop(): Promise<void> } {
  const { limits = mailLimits, metrics } = deps;
  const rows = new MailRows(deps.database);
  const stopping = new AbortController();
  const cut = new AbortController();
  const sending = sendUntil(stopping.signal, cut.signal, { ...deps, limits, rows });
  const unwatch = metrics.watch('mailsWaiting', async () => [{ labels: {}, value: await rows.waiting() }]);
  return {
    async stop() {
      unwatch();
      stopping.abort();
      const cutting = setTimeout(() => cut.abort(), limits.stopMs);
      await sending;
      clearTimeout(cutting);
    },
  };
}

type SendDeps = Required<MailsDeps> & { rows: MailRows };

/** Never rejects. */
async function sendUntil(stopped: AbortSignal, cut: AbortSignal, deps: SendDeps): Promise<void> {
  const { limits, log, mailer, rows } = deps;
  const warn = waitingWarning(deps);
  let sweepAt = performance.now() + limits.sweepEveryMs;
  let isFull = false;
  for (;;) {
    // Jitter, since all workers start together.
    await pauseFor(isFull ? 0 : limits.pollMs * (0.75 + Math.random() / 2), stopped);
    if (stopped.aborted) return;
    isFull = false;
    try {
      if (mailer === null) await warn();
      else isFull = (await sendDue(mailer, cut, deps)) === limits.atOnce;
      if (performance.now() < sweepAt) continue;
      sweepAt = performance.now() + limits.sweepEveryMs;
      await rows.sweep(limits.keptMs, limits.sweptAtOnce);
    } catch (error) {
      log.debug({ err: error }, 'the queue of mails could not be read or written: the next try follows');
    }
  }
}

/** One line for all mails that wait, and another once the queue was empty. */
function waitingWarning({ log, rows }: SendDeps): () => Promise<void> {
  let isWarned = false;
  return async () => {
    const mails = await rows.waiting();
    if (mails > 0 && !isWarned) log.warn({ mails }, 'mails wait, because SMTP_URL and MAIL_FROM are not set');
    isWarned = mails > 0;
  };
}

/** @returns how many were due, at most `atOnce` */
async function sendDue(mailer: Mailer, cut: AbortSignal, deps: SendDeps): Promise<number> {
  const { limits, rows } = deps;
  const due = await rows.claim(limits.atOnce, limits.leaseMs);
  await Promise.all(due.map((mail) => sendOne(mail, mailer, cut, deps)));
  return due.length;
}

async function sendOne(mail: MailRow, mailer: Mailer, cut: AbortSignal, { limits, log, metrics, rows }: SendDeps): Promise<void> {
  const ids = { mail_id: mail.id, key_id: mail.keyId, key_label: mail.keyLabel, attempt: mail.attempts };
  const store = (outcome: () => Promise<void>) => retryWhileTransient(outcome, AbortSignal.any([cut, AbortSignal.timeout(limits.storeMs)]));
  const failure = await mailer.send(mail, AbortSignal.any([cut, AbortSignal.timeout(limits.sendMs)]));
  if (failure === null) {
    metrics.add('mails', { outcome: 'sent' });
    log.info(ids, 'the mail to the owner of an exposed key was sent');
    return store(() => rows.sent(mail));
  }
  const { reason, isPermanent } = failure;
  const retryMs = isPermanent || mail.attempts >= limits.attempts ? null : retryAfter(mail.attempts, limits);
  metrics.add('mails', { outcome: retryMs === null ? 'given_up' : 'failed' });
  if (retryMs === null) log.error({ ...ids, reason }, 'the mail to the owner of an exposed key was given up: notify the owner in another way');
  else log.warn({ ...ids, reason, retry_after_ms: retryMs }, 'the mail to the owner of an exposed key could not be sent: it is tried again');
  return store(() => rows.failed(mail, reason, retryMs));
}

/** @param attempts so far */
export function retryAfter(attempts: number, { retryMs, longestRetryMs }: Pick<MailLimits, 'retryMs' | 'longestRetryMs'>): number {
  return Math.min(retryMs * 2 ** (attempts - 1), longestRetryMs);
}
