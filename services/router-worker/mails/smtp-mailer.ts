import { createTransport } from 'nodemailer';
import { z } from 'zod';
import type { MailConfig } from '#shared/config/mail-settings.ts';
import { withoutSecrets } from '../providers/http-stream/quoted-secrets.ts';
import { exposedKeyMail } from './exposed-key-mail.ts';
import type { MailRow } from './mail-rows.ts';

/** Until a connection is made, a server says hello, and answers a command. */
const ANSWER_MS = 15_000;
const MAX_ERROR_CHARACTERS = 500;
/** A list of addresses would be parsed as one. */
const oneAddress = z.email();

/** Why an attempt failed. */
class MailFailure {
  /** For operators: one line, without the password and the recipient. */
  readonly reason: string;
  /** The server refuses this recipient or this mail, and would refuse it again. */
  readonly isPermanent: boolean;

  constructor(reason: string, isPermanent: boolean) {
    this.reason = reason;
    this.isPermanent = isPermanent;
  }
}

export interface Mailer {
  /** Never rejects. The Message-ID and the bytes are the same at each attempt. @returns null: the server has accepted the mail */
  send(mail: MailRow, signal: AbortSignal): Promise<MailFailure | null>;
}

/** One connection per mail: they are rare. @param ca of a server whose certificate no public authority has signed; for tests */
export function smtpMailer({ server, from }: MailConfig, { ca }: { ca?: string } = {}): Mailer {
  const { host, port, isSecure, needsStartTls, login } = server;
  const transport = createTransport({
    host,
    port,
    secure: isSecure,
    requireTLS: needsStartTls,
    ...(login !== null && { auth: { user: login.user, pass: login.password } }),
    ...(ca !== undefined && { tls: { ca } }),
    dnsTimeout: ANSWER_MS,
    connectionTimeout: ANSWER_MS,
    greetingTimeout: ANSWER_MS,
    socketTimeout: ANSWER_MS,
    maxResponseSize: 64 * 1_024,
    // Texts are ours alone: no part of a mail is a file or an address to fetch.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1);
  return {
    async send(mail, signal) {
      if (!oneAddress.safeParse(mail.recipient).success) return new MailFailure('the recipient is not an e-mail address', true);
      try {
        await transport.sendMail({
          ...exposedKeyMail(mail),
          from,
          to: { name: '', address: mail.recipient },
          envelope: { from: from.address, to: [mail.recipient] },
          messageId: `<${mail.id}@${domain}>`,
          date: mail.createdAt,
          headers: { 'auto-submitted': 'auto-generated' },
          signal,
        });
        return null;
      } catch (error) {
        return failureOf(error, mail.recipient, login?.password ?? null);
      }
    },
  };
}

/** Of a recipient or a text. A refused login or sender is the operator's to correct, so that the mail is sent later. */
const OF_MAIL = new Set(['RCPT TO', 'DATA']);

function failureOf(error: unknown, recipient: string, password: string | null): MailFailure {
  const {
    message,
    command = '',
    permanent = false,
  } = error instanceof Error ? (error as Error & { command?: string; permanent?: boolean }) : { message: String(error) };
  const masked = String(withoutSecrets(message, password)).replaceAll(recipient, '<recipient>');
  const line = masked.replace(/\p{C}+/gu, ' ').slice(0, MAX_ERROR_CHARACTERS);
  return new MailFailure(line, permanent && OF_MAIL.has(command));
}
