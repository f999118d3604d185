import { createServer, type Server } from 'node:https';
import net, { type AddressInfo } from 'node:net';
import tls, { type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openGuardedPoster } from './guarded-post.ts';
import type { NameLookup } from './name-lookup.ts';
import { parseAllowHosts } from './outbound-guard.ts';
import { selfMadeCertificate } from './test-support/self-made-certificate.ts';

const NAME = 'hooks.example';
const IN_CERTIFICATE = [NAME, 'secret-name.example'];

describe('a guarded post over TLS', () => {
  const { certificate, key } = selfMadeCertificate(IN_CERTIFICATE);
  let server: Server;
  let port: number;
  const seen: { serverName: unknown; host: string | undefined }[] = [];
  let connections = 0;

  beforeEach(async () => {
    seen.length = 0;
    connections = 0;
    server = createServer({ cert: certificate, key }, (request, response) => {
      seen.push({ serverName: (request.socket as TLSSocket).servername, host: request.headers.host });
      response.end();
    });
    server.on('connection', () => {
      connections += 1;
    });
    server.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  });

  afterEach(async () => {
    vi.restoreAllMocks();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  interface Case {
    allowHosts?: string;
    host?: string;
    trusted?: string | null;
    hostAllowlist?: string[] | null;
    lookup?: NameLookup;
    connectTimeoutMs?: number;
  }
  async function post({ allowHosts = '', host = NAME, trusted = certificate, hostAllowlist = null, lookup, connectTimeoutMs = 5_000 }: Case) {
    const rules = { allowHosts: parseAllowHosts(allowHosts) };
    const poster = openGuardedPoster({ rules, connectTimeoutMs, trustedCertificates: trusted, lookup: lookup ?? (async () => ['127.0.0.1']) });
    try {
      return await poster.post({ url: `https://${host}:${port}/`, hostAllowlist, headers: {}, body: new Uint8Array() });
    } finally {
      await poster.close();
    }
  }

  /** Redirects connections to public addresses to the test's server, and records their targets. */
  function redirectSockets() {
    const realConnect = tls.connect;
    const targets: { servername: string | undefined; addresses: unknown }[] = [];
    vi.spyOn(tls, 'connect').mockImplementation((...args: unknown[]) => {
      const options = Object(args[0]);
      const target: { servername: string | undefined; addresses: unknown } = { servername: options.servername, addresses: options.host };
      targets.push(target);
      // As a socket does: literals are used as they are, names are looked up.
      if (net.isIP(options.host) === 0) {
        options.lookup(options.host, { all: true }, (_error: unknown, addresses: { address: string }[]) => {
          target.addresses = addresses.map(({ address }) => address);
        });
      }
      return realConnect({ ...options, host: '127.0.0.1' });
    });
    return targets;
  }

  it('fails for an untrusted certificate, or one for another name, and repeats nothing of it', async () => {
    const allowHosts = `${NAME}:${port},other.example:${port}`;
    const details = (networkCode: string) => ({ code: 'outbound.failed', details: { reason: 'not_connected', networkCode }, cause: undefined });
    await expect(post({ allowHosts, trusted: null })).rejects.toMatchObject(details('DEPTH_ZERO_SELF_SIGNED_CERT'));
    const error = await post({ allowHosts, host: 'other.example' }).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ ...details('ERR_TLS_CERT_ALTNAME_INVALID'), message: `no connection to the receiver could be made (other.example:${port})` });
    expect(JSON.stringify(error)).not.toContain('secret-name');
    expect(seen).toEqual([]);
  });

  it('does not accept the certificate of a name for its address', async () => {
    await expect(post({ allowHosts: `127.0.0.1:${port}`, host: '127.0.0.1' })).rejects.toMatchObject({
      details: { networkCode: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    });
    expect(seen).toEqual([]);
  });

  it('fails when the receiver never shakes hands', async () => {
    const silent = net.createServer((socket) => socket.on('error', () => {}).resume());
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    port = (silent.address() as AddressInfo).port;
    const posted = post({ allowHosts: `${NAME}:${port}`, connectTimeoutMs: 100 });
    await expect(posted).rejects.toMatchObject({ code: 'outbound.failed', details: { reason: 'not_connected', networkCode: 'ETIMEDOUT' } });
    await new Promise((resolve) => silent.close(resolve));
  });

  it('sends the name in TLS and in the request, without its trailing dot', async () => {
    expect(await post({ allowHosts: `${NAME}:${port}`, host: `${NAME.toUpperCase()}.` })).toEqual({ status: 200, retryAfterMs: null });
    expect(seen).toEqual([{ serverName: NAME, host: `${NAME}:${port}` }]);
  });

  it('DESIGN 11: a guarded post connects to the very addresses that were checked, though the name has moved since', async () => {
    const targets = redirectSockets();
    const answers = [['8.8.8.8', '2606:4700::1111'], ['127.0.0.1']];
    const lookup: NameLookup = async () => answers.shift() ?? ['127.0.0.1'];

    expect((await post({ lookup, hostAllowlist: ['.example'] })).status).toBe(200);
    expect(targets).toEqual([{ servername: NAME, addresses: ['8.8.8.8', '2606:4700::1111'] }]);
    expect(answers).toEqual([['127.0.0.1']]);

    await expect(post({ lookup, hostAllowlist: ['.example'] })).rejects.toMatchObject({ code: 'outbound.refused', details: { reason: 'address_not_public' } });
    expect(targets).toHaveLength(1);
    expect(connections).toBe(1);
  });

  it('tries no more than a few addresses of a name', async () => {
    const targets = redirectSockets();
    const many = Array.from({ length: 100 }, (_, index) => `8.8.8.${index}`);
    expect((await post({ lookup: async () => many })).status).toBe(200);
    expect(targets).toEqual([{ servername: NAME, addresses: many.slice(0, 4) }]);
  });

  it('sends no name when the allow-list holds the address itself', async () => {
    const targets = redirectSockets();
    const lookup: NameLookup = () => Promise.reject(new Error('must not be called'));
    // The certificate is not for this address, so the connection is refused after the handshake; only the target matters.
    await expect(post({ host: '[2606:4700::1111]', hostAllowlist: ['[2606:4700::1111]'], lookup })).rejects.toMatchObject({
      details: { networkCode: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    });
    expect(targets).toEqual([{ servername: '', addresses: '2606:4700::1111' }]);
  });
});
