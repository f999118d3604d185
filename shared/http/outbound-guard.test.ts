import { describe, expect, it } from 'vitest';
import type { NameLookup } from './name-lookup.ts';
import { checkOutboundUrl, type OutboundRules, parseAllowHosts, reachableAddresses } from './outbound-guard.ts';

const rules: OutboundRules = {
  allowHosts: parseAllowHosts('receiver.internal:8443, 10.0.0.5:9000, [fd00::5]:9000, localhost:3000, plain.internal:80, secure.internal:443'),
};

/** The normalised host, or the reason of the refusal. */
function outcomeOf(url: string, hostAllowlist: readonly string[] | null = null): string {
  try {
    return checkOutboundUrl(url, rules, hostAllowlist).href;
  } catch (error) {
    expect(error).toMatchObject({ code: 'outbound.refused', details: { reason: expect.any(String) }, message: expect.stringMatching(/^the .+\w$/) });
    return Object(error).details.reason;
  }
}

describe('checkOutboundUrl', () => {
  it.each([
    // Invalid or ambiguous URLs.
    ['', 'url_invalid'],
    ['example.com/path', 'url_invalid'],
    ['//example.com', 'url_invalid'],
    ['https:example.com', 'url_invalid'],
    ['https:/example.com', 'url_invalid'],
    ['https:///example.com', 'url_invalid'],
    ['https://', 'url_invalid'],
    ['https://?x', 'url_invalid'],
    [' https://example.com', 'url_invalid'],
    ['https://example.com\n', 'url_invalid'],
    ['https://exam\tple.com', 'url_invalid'],
    ['https://example.com/a b', 'url_invalid'],
    ['https://example.com/\u0000', 'url_invalid'],
    ['https://example.com/\u0085', 'url_invalid'],
    ['https://good.example\\@bad.example/', 'url_invalid'],
    ['https://example.com:65536', 'url_invalid'],
    ['https://1.2.3.4.5', 'url_invalid'],
    ['https://256.1.1.1', 'url_invalid'],
    ['https://exa%00mple.com', 'url_invalid'],
    [`https://example.com/${'a'.repeat(2_029)}`, 'url_too_long'],
    [`https://example.com/${'é'.repeat(400)}`, 'url_too_long'],
    // Schemes.
    ['http://example.com', 'scheme_not_allowed'],
    ['HTTP://example.com', 'scheme_not_allowed'],
    ['ftp://example.com', 'scheme_not_allowed'],
    ['file://example.com/etc/passwd', 'scheme_not_allowed'],
    ['ws://example.com', 'scheme_not_allowed'],
    ['gopher://example.com', 'scheme_not_allowed'],
    // User information.
    ['https://user@example.com', 'userinfo'],
    ['https://user:password@example.com', 'userinfo'],
    ['https://@example.com', 'userinfo'],
    ['https://example.com@10.0.0.1', 'userinfo'],
    ['http://user@localhost:3000', 'userinfo'],
    // Invalid host names.
    ['https://example..com', 'host_invalid'],
    ['https://example.com..', 'host_invalid'],
    ['https://ex!ample.com', 'host_invalid'],
    ['https://*.example.com', 'host_invalid'],
    ['https://.example.com', 'host_invalid'],
    [`https://${'a'.repeat(64)}.com`, 'host_invalid'],
    [`https://${'a.'.repeat(127)}com`, 'host_invalid'],
    ['https://example.com:0', 'host_invalid'],
    // Loopback names.
    ['https://localhost', 'localhost'],
    ['https://LOCALHOST:8443', 'localhost'],
    ['https://localhost.', 'localhost'],
    ['https://localhost%2e', 'localhost'],
    ['https://api.localhost', 'localhost'],
    ['https://ｌocalhost', 'localhost'],
    // IP literals in all spellings.
    ['https://8.8.8.8', 'ip_literal'],
    ['https://127.0.0.1', 'ip_literal'],
    ['https://127.0.0.1.', 'ip_literal'],
    ['https://127.1', 'ip_literal'],
    ['https://2130706433', 'ip_literal'],
    ['https://0x7f000001', 'ip_literal'],
    ['https://0x7f.0.0.0x1', 'ip_literal'],
    ['https://0177.0.0.01', 'ip_literal'],
    ['https://017700000001', 'ip_literal'],
    ['https://0', 'ip_literal'],
    ['https://%31%32%37.0.0.1', 'ip_literal'],
    ['https://①②⑦.⓪.⓪.①', 'ip_literal'],
    ['https://127。0。0。1', 'ip_literal'],
    ['https://169.254.169.254/latest/meta-data', 'ip_literal'],
    ['https://[::1]', 'ip_literal'],
    ['https://[::]', 'ip_literal'],
    ['https://[::ffff:127.0.0.1]', 'ip_literal'],
    ['https://[::ffff:7f00:1]', 'ip_literal'],
    ['https://[0:0:0:0:0:ffff:10.0.0.1]', 'ip_literal'],
    ['https://[2606:4700::1111]', 'ip_literal'],
    ['https://[fe80::1%25eth0]', 'url_invalid'],
    ['https://[fe80::1%eth0]', 'url_invalid'],
    // An exception is for one port of one host.
    ['http://receiver.internal:8444', 'scheme_not_allowed'],
    ['http://receiver.internal', 'scheme_not_allowed'],
    ['http://sub.receiver.internal:8443', 'scheme_not_allowed'],
    ['http://localhost:3001', 'scheme_not_allowed'],
    ['https://localhost:3001', 'localhost'],
    ['http://10.0.0.6:9000', 'scheme_not_allowed'],
    ['https://10.0.0.5', 'ip_literal'],
    ['https://[::ffff:10.0.0.5]:9000', 'ip_literal'],
    ['http://secure.internal', 'scheme_not_allowed'],
  ])('refuses %j: %s', (url, reason) => {
    expect(outcomeOf(url)).toBe(reason);
  });

  it.each([
    ['https://example.com', 'https://example.com/'],
    ['HTTPS://Example.COM:443/A?b=C#d', 'https://example.com/A?b=C'],
    ['https://example.com.:8443/', 'https://example.com:8443/'],
    ['https://example.com/a@b', 'https://example.com/a@b'],
    ['https://example.com?to=x@y', 'https://example.com/?to=x@y'],
    ['https://bücher.example/ü', 'https://xn--bcher-kva.example/%C3%BC'],
    ['https://ex%61mple.com', 'https://example.com/'],
    ['https://a_b.example.com', 'https://a_b.example.com/'],
    ['https://notlocalhost', 'https://notlocalhost/'],
    ['https://localhost.example.com', 'https://localhost.example.com/'],
    ['https://3com.com', 'https://3com.com/'],
    [`https://example.com/${'a'.repeat(2_028)}`, `https://example.com/${'a'.repeat(2_028)}`],
    ['http://receiver.internal:8443/x', 'http://receiver.internal:8443/x'],
    ['https://Receiver.Internal.:8443', 'https://receiver.internal:8443/'],
    ['http://localhost:3000', 'http://localhost:3000/'],
    ['http://10.0.0.5:9000', 'http://10.0.0.5:9000/'],
    ['http://167772165:9000', 'http://10.0.0.5:9000/'],
    ['http://[fd00:0::5]:9000', 'http://[fd00::5]:9000/'],
    ['http://plain.internal', 'http://plain.internal/'],
    ['https://secure.internal', 'https://secure.internal/'],
  ])('takes %j as %s', (url, href) => {
    expect(outcomeOf(url)).toBe(href);
  });

  it.each([
    ['https://other.example', ['hooks.example'], 'host_not_allowed'],
    ['https://a.hooks.example', ['hooks.example'], 'host_not_allowed'],
    ['https://badexample.com', ['.example.com'], 'host_not_allowed'],
    ['https://example.com.bad.example', ['.example.com', 'example.com'], 'host_not_allowed'],
    ['https://example.com', ['.', '', '*', '*.com'], 'host_not_allowed'],
    ['https://example.com', ['example.com:443', 'https://example.com', 'example.com/', 'user@example.com'], 'host_not_allowed'],
    ['https://8.8.8.8', ['8.8.8.9'], 'host_not_allowed'],
    ['https://8.8.8.8', ['.8.8.8.8'], 'host_not_allowed'],
    ['https://[::ffff:8.8.8.8]', ['8.8.8.8'], 'host_not_allowed'],
    ['https://10.0.0.1', ['10.0.0.1'], 'address_not_public'],
    ['https://2130706433', ['127.0.0.1'], 'address_not_public'],
    ['https://[::1]', ['[::1]'], 'address_not_public'],
    ['https://[::ffff:8.8.8.8]', ['[::ffff:8.8.8.8]'], 'address_not_public'],
    ['https://168.63.129.16', ['168.63.129.16'], 'address_not_public'],
    ['http://10.0.0.5:9000', ['hooks.example'], 'host_not_allowed'],
    ['https://localhost', ['localhost'], 'localhost'],
    ['http://hooks.example', ['hooks.example'], 'scheme_not_allowed'],
    ['https://localhost', [], 'localhost'],
    ['https://8.8.8.8', [], 'ip_literal'],
  ])('refuses %j when the list is %j: %s', (url, hostAllowlist, reason) => {
    expect(outcomeOf(url, hostAllowlist)).toBe(reason);
  });

  it.each([
    ['https://hooks.example', ['hooks.example']],
    ['https://HOOKS.example.', ['other.example', 'hooks.example']],
    ['https://hooks.example', ['Hooks.Example.']],
    ['https://example.com', ['.example.com']],
    ['https://a.b.example.com', ['.example.com']],
    ['https://bücher.example', ['xn--bcher-kva.example']],
    ['https://a.bücher.example', ['.bücher.example']],
    ['https://8.8.8.8', ['8.8.8.8']],
    ['https://[2606:4700::1111]', ['[2606:4700:0::1111]']],
    ['https://example.com', []],
    ['http://10.0.0.5:9000', ['10.0.0.5']],
    ['http://receiver.internal:8443', ['.internal']],
  ])('takes %j when the list is %j', (url, hostAllowlist) => {
    expect(outcomeOf(url, hostAllowlist)).toMatch(/^https?:/);
  });

  it.each([
    ['http://127.0.0.1:9000/done', '127.0.0.1:9000'],
    ['http://hooks.example.com/', 'hooks.example.com:80'],
    ['https://LOCALHOST/done', 'localhost:443'],
    ['https://[::1]:8443/', '[::1]:8443'],
  ])('names the setting that would allow %s, as it has to be written', (url, entry) => {
    expect(() => checkOutboundUrl(url, rules, null)).toThrow(`OUTBOUND_ALLOW_HOSTS=${entry} `);
    expect(checkOutboundUrl(url, { allowHosts: parseAllowHosts(entry) }, null).href).toBe(url.toLowerCase());
  });

  it('names it for an address of the list that is not public, whether it stands in the URL or is what the name leads to', async () => {
    const named = expect.objectContaining({ message: expect.stringContaining('OUTBOUND_ALLOW_HOSTS=10.0.0.6:443 ') });
    expect(() => checkOutboundUrl('https://10.0.0.6/', rules, ['10.0.0.6'])).toThrow(named);
    const lookup: NameLookup = async () => ['10.0.0.6'];
    const refused = reachableAddresses(new URL('https://hooks.example:8443/'), rules, lookup);
    await expect(refused).rejects.toThrow('OUTBOUND_ALLOW_HOSTS=hooks.example:8443 ');
  });

  it.each(['ftp://example.com', 'https://user@example.com', 'https://example.com:0/', ''])('does not name it for %j, which it would not allow', (url) => {
    expect(() => checkOutboundUrl(url, rules, null)).toThrow(expect.objectContaining({ message: expect.not.stringContaining('OUTBOUND_ALLOW_HOSTS') }));
  });

  it('repeats only host and port of the URL in its refusals', () => {
    const secretive = ['https://user:hunter2@example.com', 'ftp://example.com/hunter2', 'https://10.0.0.1/hunter2', 'https://localhost/?hunter2', 'hunter2'];
    for (const url of secretive)
      expect(() => checkOutboundUrl(url, rules, null)).toThrow(expect.objectContaining({ message: expect.not.stringContaining('hunter2') }));
  });
});

describe('parseAllowHosts', () => {
  it.each([
    'example.com',
    'example.com:',
    ':8080',
    'example.com:0',
    'example.com:65536',
    'example.com:80x',
    'https://example.com:443',
    'example.com:443/path',
    'user@example.com:443',
    '*.example.com:443',
    '.example.com:443',
    '*:443',
    'fd00::1:443',
    '[fd00::1]',
    '[fe80::1%eth0]:443',
    'a b:443',
    'a..b:443',
    '1.2.3.4.5:443',
  ])('refuses %j by its name', (entry) => {
    expect(() => parseAllowHosts(`good.example:1,${entry}`)).toThrow(
      expect.objectContaining({ code: 'config.invalid', message: expect.stringContaining(`'${entry}'`) }),
    );
  });

  it('has no pairs when there is nothing to read', () => {
    for (const text of [undefined, '', ' ', ',']) expect(parseAllowHosts(text)).toEqual(new Set());
  });

  it('normalises each pair to the spelling of URLs', () => {
    const text = ' Receiver.Internal:8080,bücher.example.:443,[FD00:0::1]:9000 , 127.1:0080,';

    expect(parseAllowHosts(text)).toEqual(new Set(['receiver.internal:8080', 'xn--bcher-kva.example:443', '[fd00::1]:9000', '127.0.0.1:80']));
  });
});

describe('reachableAddresses', () => {
  const never: NameLookup = () => Promise.reject(new Error('must not be called'));
  const answers =
    (...addresses: string[]): NameLookup =>
    async () =>
      addresses;

  it.each([
    ['a private address', ['10.0.0.1']],
    ['a private address behind a public one', ['8.8.8.8', '10.0.0.1']],
    ['a private address before a public one', ['127.0.0.1', '8.8.8.8']],
    ['a private address of the other family', ['8.8.8.8', '::1']],
    ['many public addresses and a mapped one', [...Array.from({ length: 20 }, (_, index) => `8.8.8.${index}`), '::ffff:10.0.0.1']],
    ['the end of a chain of names that is no address', ['8.8.8.8', 'internal.example.com']],
  ])('refuses a name that has %s', async (_what, addresses) => {
    const url = checkOutboundUrl('https://hooks.example', rules, ['hooks.example']);

    await expect(reachableAddresses(url, rules, answers(...addresses))).rejects.toMatchObject({
      code: 'outbound.refused',
      details: { reason: 'address_not_public' },
    });
  });

  it('refuses a private literal that comes without a check', async () => {
    for (const url of ['https://127.0.0.1', 'https://[::1]', 'https://[::ffff:10.0.0.1]']) {
      await expect(reachableAddresses(new URL(url), rules, never)).rejects.toMatchObject({ details: { reason: 'address_not_public' } });
    }
  });

  it('returns all addresses of a public name, from name servers only', async () => {
    const sources: string[] = [];
    const lookup: NameLookup = async (name, source) => {
      sources.push(`${source} ${name}`);
      return ['8.8.8.8', '2606:4700::1111'];
    };

    expect(await reachableAddresses(new URL('https://hooks.example:8443/'), rules, lookup)).toEqual(['8.8.8.8', '2606:4700::1111']);
    expect(sources).toEqual(['dns hooks.example']);
  });

  it('resolves an excepted host by the system, and accepts the result', async () => {
    const sources: string[] = [];
    const lookup: NameLookup = async (name, source) => {
      sources.push(`${source} ${name}`);
      return ['10.1.2.3', '8.8.8.8'];
    };

    expect(await reachableAddresses(new URL('http://receiver.internal:8443/'), rules, lookup)).toEqual(['10.1.2.3', '8.8.8.8']);
    expect(sources).toEqual(['system receiver.internal']);
  });

  it('returns literals unchanged, without a lookup', async () => {
    expect(await reachableAddresses(new URL('http://[fd00::5]:9000/'), rules, never)).toEqual(['fd00::5']);
    expect(await reachableAddresses(new URL('https://8.8.8.8/'), rules, never)).toEqual(['8.8.8.8']);
  });
});
