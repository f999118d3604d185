import { z } from 'zod';
import { configInvalid } from './problems.ts';

/** How mails are sent. */
export interface MailConfig {
  server: SmtpServer;
  from: MailSender;
}

export interface SmtpServer {
  host: string;
  port: number;
  /** TLS from the first byte (SMTPS). Otherwise STARTTLS, if the server supports it. */
  isSecure: boolean;
  /** Whether a server without STARTTLS is refused: it would read the password, and so would others on its way. */
  needsStartTls: boolean;
  /** Null: no authentication. */
  login: { user: string; password: string } | null;
}

export interface MailSender {
  /** Empty: none. */
  name: string;
  address: string;
}

const FORM = 'must be smtp://host:port or smtps://host:port, with user:password@ before the host if the server wants a login';
const PORTS = { 'smtp:': 587, 'smtps:': 465 } as const;
/** A server on this machine may have no TLS. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
/** `address`, or `name <address>`. */
const SENDER = /^(?:([^<>"\p{Cc}\p{Cs}\u2028\u2029]{0,200}) )?<([^<>\s]+)>$/u;

export const smtpUrl = z.string().transform((text, context): SmtpServer => {
  const server = serverIn(text);
  if (server !== null) return server;
  context.addIssue({ code: 'custom', message: FORM });
  return z.NEVER;
});

export const mailFrom = z.string().transform((text, context): MailSender => {
  const [, name = '', address = text] = SENDER.exec(text) ?? [];
  if (z.email().safeParse(address).success) return { name: name.trim(), address };
  context.addIssue({ code: 'custom', message: 'must be an e-mail address, or a name and the address in angle brackets' });
  return z.NEVER;
});

/** Null: no mail is sent. @throws `config.invalid` when only one of both is set */
export function mailConfigOf({ SMTP_URL: server, MAIL_FROM: from }: { SMTP_URL?: SmtpServer | undefined; MAIL_FROM?: MailSender | undefined }) {
  if (server !== undefined && from !== undefined) return { server, from } satisfies MailConfig;
  if (server === undefined && from === undefined) return null;
  const [given, missing] = server === undefined ? ['MAIL_FROM', 'SMTP_URL'] : ['SMTP_URL', 'MAIL_FROM'];
  throw configInvalid('the environment', [`${missing}: must be set, since ${given} is: mails need both`]);
}

/** Null: not of the form. */
function serverIn(text: string): SmtpServer | null {
  if (!URL.canParse(text)) return null;
  const { protocol, hostname, port, pathname, search, hash, username, password } = new URL(text);
  if (protocol !== 'smtp:' && protocol !== 'smtps:') return null;
  const hasMore = !['', '/'].includes(pathname) || search !== '' || hash !== '';
  if (hostname === '' || hasMore || (username === '') !== (password === '')) return null;
  const login = username === '' ? null : loginOf(username, password);
  if (login === undefined) return null;
  const isSecure = protocol === 'smtps:';
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? PORTS[protocol] : Number(port),
    isSecure,
    needsStartTls: !isSecure && login !== null && !LOOPBACK.test(hostname),
    login,
  };
}

/** Undefined: a percent sign that encodes nothing. */
function loginOf(user: string, password: string): SmtpServer['login'] | undefined {
  try {
    return { user: decodeURIComponent(user), password: decodeURIComponent(password) };
  } catch {
    return undefined;
  }
}
