import { generateKeyPairSync, sign } from 'node:crypto';

/** A self-signed certificate for these names and its key, as PEM (RFC 5280, 4.1); generated, so that no key is in the repository and none expires. */
export function selfMadeCertificate(names: readonly string[]): { certificate: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'));
  const commonName = der(0x30, der(0x31, der(0x30, Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from(names[0] ?? '')))));
  const validity = der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x18, Buffer.from('99991231235959Z')));
  const alternatives = der(0x30, ...names.map((name) => der(0x82, Buffer.from(name))));
  const extensions = der(0xa3, der(0x30, der(0x30, Buffer.from('0603551d11', 'hex'), der(0x04, alternatives))));
  const version3 = der(0xa0, Buffer.from('020102', 'hex'));
  const serial = der(0x02, Buffer.from([1]));
  const publicInfo = publicKey.export({ type: 'spki', format: 'der' });
  const body = der(0x30, version3, serial, ecdsaWithSha256, commonName, validity, commonName, publicInfo, extensions);
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey));
  const base64 = der(0x30, body, ecdsaWithSha256, signature).toString('base64');
  const lines = base64.match(/.{1,64}/g) ?? [];
  return {
    certificate: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** One ASN.1 value in DER: tag, length, content. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
