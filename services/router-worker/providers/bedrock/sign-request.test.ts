import { createHash, createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { requestSigner } from './sign-request.ts';

const REGION = 'eu-central-1';
const BODY = '{"messages":[]}';
const CREDENTIALS = { accessKeyId: 'AKIA1', secretAccessKey: 'secret/one+==', sessionToken: 'token==' };
const clock = { nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5) };

/** Signature Version 4 as AWS documents it: each segment of the path, as it is sent, is encoded once more. */
function signatureOf({ host, path, query }: { host: string; path: string; query: string }): string {
  const hash = (text: string) => createHash('sha256').update(text).digest('hex');
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
  const canonical = [
    ...['POST', path.split('/').map(encodeURIComponent).join('/'), query],
    ...[`host:${host}`, 'x-amz-date:20260102T030405Z', 'x-amz-security-token:token==', ''],
    ...['host;x-amz-date;x-amz-security-token', hash(BODY)],
  ].join('\n');
  const scope = `20260102/${REGION}/bedrock/aws4_request`;
  const key = ['20260102', REGION, 'bedrock', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${CREDENTIALS.secretAccessKey}`);
  return hmac(key, ['AWS4-HMAC-SHA256', '20260102T030405Z', scope, hash(canonical)].join('\n')).toString('hex');
}

const arn = 'arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/a1b2';
const PATH = `/model/${encodeURIComponent(arn)}/converse`;

it.each([
  ['an ARN with a slash', 'https://bedrock-runtime.eu-central-1.amazonaws.com', { host: 'bedrock-runtime.eu-central-1.amazonaws.com', path: PATH, query: '' }],
  ['a base address with a path', 'https://proxy.example:8443/aws/bedrock/', { host: 'proxy.example:8443', path: `/aws/bedrock${PATH}`, query: '' }],
  [
    'a base address with a query, which is sorted',
    'https://proxy.example/aws?team=blue%20sky&a=1',
    { host: 'proxy.example', path: `/aws${PATH}`, query: 'a=1&team=blue%20sky' },
  ],
])('signs %s', async (_case, baseUrl, expected) => {
  const { authorization } = await requestSigner({ baseUrl, region: REGION, clock })(CREDENTIALS, PATH, BODY);

  expect(authorization).toContain(`Signature=${signatureOf(expected)}`);
});
