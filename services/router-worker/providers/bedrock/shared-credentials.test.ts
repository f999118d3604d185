import { expect, it } from 'vitest';
import { sharedCredentials } from './shared-credentials.ts';

const FILE = `# written by a tool
[default]
aws_access_key_id = AKIA1
aws_secret_access_key=secret/one+==
region = eu-central-1

[profile staging]\r
AWS_ACCESS_KEY_ID = AKIA2\r
aws_secret_access_key = secret-two\r
aws_session_token = token==\r

[half]
aws_access_key_id = AKIA3
`;

it('reads a profile, with its session token where it has one', () => {
  expect(sharedCredentials(FILE, 'default')).toEqual({ accessKeyId: 'AKIA1', secretAccessKey: 'secret/one+==', sessionToken: null });
  expect(sharedCredentials(FILE, 'staging')).toEqual({ accessKeyId: 'AKIA2', secretAccessKey: 'secret-two', sessionToken: 'token==' });
});

it.each(['half', 'none', ''])('has no credentials of the profile %j', (profile) => {
  expect(sharedCredentials(FILE, profile)).toBeNull();
});

it('has none that are temporary without their session token, as while the file is written', () => {
  const half = '[default]\naws_access_key_id = ASIA1\naws_secret_access_key = s\n';
  expect(sharedCredentials(half, 'default')).toBeNull();
  expect(sharedCredentials(`${half}aws_session_token = t\n`, 'default')).toEqual({ accessKeyId: 'ASIA1', secretAccessKey: 's', sessionToken: 't' });
});

it('has none with characters that no header allows', () => {
  expect(sharedCredentials('[default]\naws_access_key_id = a b\naws_secret_access_key = s', 'default')).toBeNull();
});
