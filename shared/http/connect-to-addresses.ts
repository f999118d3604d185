import net, { isIP, type LookupFunction, type Socket } from 'node:net';
import tls from 'node:tls';
import { bareAddress } from './outbound-guard.ts';

/** Further addresses are ignored. */
const MAX_ADDRESSES_TRIED = 4;
/** Delay before the next address is tried: longer than any round trip. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

interface ConnectOptions {
  timeoutMs: number;
  /** PEM of the only trusted authorities; null: the default ones. */
  trustedCertificates: string | null;
  /** Destroys the socket in any state. */
  signal: AbortSignal;
}

/**
 * Connects to one of the given addresses and no other. The URL's host is used for TLS only and not resolved again.
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
    lookup: fixedLookup(addresses.slice(0, MAX_ADDRESSES_TRIED)),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    noDelay: true,
  };
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const trust = trustedCertificates === null ? {} : { ca: trustedCertificates };
    // TLS allows no IP address as server name.
    const socket = secure ? tls.connect({ ...target, ...trust, ALPNProtocols: ['http/1.1'], servername: isIP(host) ? '' : host }) : net.connect(target);
    const fail = (error: unknown) => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => fail(Object.assign(new Error('the connection took too long'), { code: 'ETIMEDOUT' })), timeoutMs);
    // Stays for the socket's lifetime: an unhandled 'error' event would end the process.
    socket.on('error', fail);
    const onAbort = () => fail(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('close', () => signal.removeEventListener('abort', onAbort));
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      resolve(socket);
    });
  });
}

/** A lookup that returns the known addresses. With `autoSelectFamily` a socket always requests all of them. */
function fixedLookup(addresses: readonly string[]): LookupFunction {
  const known = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, _options, callback) => callback(null, known);
}
