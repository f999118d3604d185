import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { isIP } from 'node:net';

export interface Certified {
  /** PEM. */
  certificate: string;
  key: string;
}

/** A self-signed certificate for these names and its key, as PEM (RFC 5280, 4.1); generated, so that no key is in the repository and none expires. */
export function selfMadeCertificate(names: readonly string[]): Certified {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = names[0] ?? '';
  return certified({ subject, issuer: subject, issuerKey: privateKey, publicKey, privateKey, extensions: [alternativeNames(names)] });
}

/** A certificate authority, which issues certificates for names and IPv4 addresses. */
export function selfMadeAuthority(name: string): Certified & { issue(names: readonly string[]): Certified } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const isAuthority = der(0x30, Buffer.from('0603551d13', 'hex'), Buffer.from('0101ff', 'hex'), der(0x04, der(0x30, Buffer.from('0101ff', 'hex'))));
  const own = certified({ subject: name, issuer: name, issuerKey: privateKey, publicKey, privateKey, extensions: [isAuthority] });
  return {
    ...own,
    issue(names) {
      const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      return certified({ subject: names[0] ?? '', issuer: name, issuerKey: privateKey, ...pair, extensions: [alternativeNames(names)] });
    },
  };
}

interface Certificate {
  subject: string;
  issuer: string;
  issuerKey: KeyObject;
  publicKey: KeyObject;
  privateKey: KeyObject;
  extensions: readonly Buffer[];
}

function certified({ subject, issuer, issuerKey, publicKey, privateKey, extensions }: Certificate): Certified {
  const ecdsaWithSha256 = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'));
  const validity = der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x18, Buffer.from('99991231235959Z')));
  const version3 = der(0xa0, Buffer.from('020102', 'hex'));
  const serial = der(0x02, Buffer.from([1]));
  const publicInfo = publicKey.export({ type: 'spki', format: 'der' });
  const all = der(0xa3, der(0x30, ...extensions));
  const body = der(0x30, version3, serial, ecdsaWithSha256, commonName(issuer), validity, commonName(subject), publicInfo, all);
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, issuerKey));
  const base64 = der(0x30, body, ecdsaWithSha256, signature).toString('base64');
  const lines = base64.match(/.{1,64}/g) ?? [];
  return {
    certificate: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function commonName(name: string): Buffer {
  return der(0x30, der(0x31, der(0x30, Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from(name)))));
}

function alternativeNames(names: readonly string[]): Buffer {
  const alternatives = names.map((name) => (isIP(name) === 4 ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name))));
  return der(0x30, Buffer.from('0603551d11', 'hex'), der(0x04, der(0x30, ...alternatives)));
}

/** One ASN.1 value in DER: tag, length, content. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
