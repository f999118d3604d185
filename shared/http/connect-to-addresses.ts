import net, { isIP, type LookupFunction, type Socket } from 'node:net';
import tls from 'node:tls';
import { bareAddress } from './outbound-guard.ts';

/** A host with more addresses than this has others to spare. */
const MAX_ADDRESSES_TRIED = 4;
/** How long an address may be silent before the next one is tried: longer than a packet needs around the world. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

interface ConnectOptions {
  timeoutMs: number;
  /** PEM of the authorities that are trusted instead of the usual ones; null: the usual ones. */
  trustedCertificates: string | null;
  /** Closes the socket in whatever state it is. */
  signal: AbortSignal;
}

/**
 * A connection to one of these addresses and to no other, for the host of the URL: its name is asked for and checked in TLS, but nobody
 * resolves it again.
 *
 * @throws the socket's error, or the signal's reason
 */
export function connectToAddresses(url: URL, addresses: readonly string[], options: ConnectOptions): Promise<Socket> {
  const { timeoutMs, trustedCertificates, signal } = options;
  const host = bareAddress(url.hostname);
  const secure = url.protocol === 'https:';
  const target = {
    host,
    port: Number(url.port || (secure ? 443 : 80)),
    lookup: answering(addresses.slice(0, MAX_ADDRESSES_TRIED)),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    noDelay: true,
  };
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const trust = trustedCertificates === null ? {} : { ca: trustedCertificates };
    // A server name is a name: TLS has no place for an address there.
    const socket = secure ? tls.connect({ ...target, ...trust, ALPNProtocols: ['http/1.1'], servername: isIP(host) ? '' : host }) : net.connect(target);
    const give = (error: unknown) => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => give(Object.assign(new Error('the connection took too long'), { code: 'ETIMEDOUT' })), timeoutMs);
    // Stays for as long as the socket does: an error that nobody hears would end the process.
    socket.on('error', give);
    const onAbort = () => give(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('close', () => signal.removeEventListener('abort', onAbort));
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      resolve(socket);
    });
  });
}

/** A lookup that knows the answer already. A socket that tries several addresses always asks for all. */
function answering(addresses: readonly string[]): LookupFunction {
  const known = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, _options, callback) => callback(null, known);
}
