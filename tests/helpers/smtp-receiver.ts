import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

interface ReceivedMail {
  from: string;
  to: string[];
  /** As it came: headers, an empty line, the body. */
  source: string;
  messageId: string;
}

export interface SmtpReceiver {
  host: string;
  port: number;
  received: ReceivedMail[];
  /** Logins that were tried. */
  logins: { user: string | undefined; password: string | null | undefined }[];
  /** Connections that were opened. */
  connections: number;
  close(): Promise<void>;
}

/** An error that the server answers with. */
export function smtpError(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

/** An SMTP server on a free port of this machine, which keeps what it accepts. @param options of the server, before those of this helper */
export async function startSmtpReceiver(options: SMTPServerOptions & { onMail?: (mail: ReceivedMail) => Promise<void> | void } = {}): Promise<SmtpReceiver> {
  const { onMail, ...serverOptions } = options;
  const receiver: SmtpReceiver = { host: '127.0.0.1', port: 0, received: [], logins: [], connections: 0, close: async () => {} };
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    closeTimeout: 1,
    onConnect: (_, done) => {
      receiver.connections += 1;
      done();
    },
    onAuth: ({ username: user, password }, _, done) => {
      receiver.logins.push({ user, password });
      done(null, { user });
    },
    onData: (stream, { envelope }, done) => {
      text(stream)
        .then(async (source) => {
          const messageId = /^Message-ID: (.*)$/im.exec(source)?.[1]?.trim() ?? '';
          const mail = {
            from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
            to: envelope.rcptTo.map(({ address }) => address),
            source,
            messageId,
          };
          receiver.received.push(mail);
          await onMail?.(mail);
        })
        .then(() => done(), done);
    },
    ...serverOptions,
  });
  // A client that leaves early.
  server.on('error', () => {});
  await new Promise<void>((resolve) => {
    server.listen(0, receiver.host, resolve);
  });
  receiver.port = (server.server.address() as AddressInfo).port;
  receiver.close = () => new Promise((resolve) => server.close(resolve));
  return receiver;
}
