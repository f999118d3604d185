import { describe, expect, it } from 'vitest';
import { isPublicAddress } from './public-address.ts';

describe('isPublicAddress', () => {
  const refused: [string, string][] = [
    ['unspecified', '0.0.0.0'],
    ['this network', '0.1.2.3'],
    ['loopback', '127.0.0.1'],
    ['loopback beyond its first address', '127.255.255.254'],
    ['private 10/8', '10.0.0.1'],
    ['private 172.16/12', '172.31.255.255'],
    ['private 192.168/16', '192.168.1.1'],
    ['shared 100.64/10', '100.64.0.1'],
    ['shared 100.64/10 at its end', '100.127.255.255'],
    ['link-local', '169.254.1.1'],
    ['the usual metadata server', '169.254.169.254'],
    ["Alibaba's metadata server", '100.100.100.200'],
    ["Oracle's metadata server", '192.0.0.192'],
    ["Azure's metadata server", '168.63.129.16'],
    ['multicast', '224.0.0.1'],
    ['broadcast', '255.255.255.255'],
    ['reserved', '240.0.0.1'],
    ['documentation', '203.0.113.5'],
    ['benchmarks', '198.18.0.1'],
    ['6to4 relays', '192.88.99.1'],
    ['unspecified, IPv6', '::'],
    ['loopback, IPv6', '::1'],
    ['link-local, IPv6', 'fe80::1'],
    ['link-local with a zone', 'fe80::1%eth0'],
    ['a public address with a zone', '2606:4700::1111%eth0'],
    ['unique local', 'fd00::1'],
    ["Amazon's metadata server over IPv6", 'fd00:ec2::254'],
    ["Google's metadata server over IPv6", 'fd20:ce::254'],
    ['site-local', 'fec0::1'],
    ['multicast, IPv6', 'ff02::1'],
    ['documentation, IPv6', '2001:db8::1'],
    ['loopback, mapped', '::ffff:127.0.0.1'],
    ['loopback, mapped, in hexadecimal', '::ffff:7f00:1'],
    ['a public address, mapped', '::ffff:8.8.8.8'],
    ['loopback, translated', '::ffff:0:127.0.0.1'],
    ['loopback, in the oldest way', '::127.0.0.1'],
    ['loopback, in the oldest way, in hexadecimal', '::7f00:1'],
    ['a private address behind NAT64', '64:ff9b::10.0.0.1'],
    ['a private address behind local NAT64', '64:ff9b:1::a00:1'],
    ['loopback in 6to4', '2002:7f00:1::1'],
    ['a private address in Teredo', '2001:0:4136:e378:8000:63bf:f5ff:fffe'],
    ['a private address in ISATAP', '2606:4700::5efe:10.0.0.1'],
    ['a private address in ISATAP with the other mark', '2606:4700::200:5efe:10.0.0.1'],
    ['nothing that is given out', '4000::1'],
    ['a name', 'example.com'],
    ['nothing', ''],
  ];
  it.each(refused)('refuses %s: %s', (_what, address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each(['8.8.8.8', '1.1.1.1', '100.63.255.255', '100.128.0.1', '172.32.0.1', '2606:4700::1111', '2a00:1450:4001:80b::200e'])('takes %s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});
