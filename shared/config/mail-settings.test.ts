import { describe, expect, it } from 'vitest';
import { mailConfigOf, mailFrom, smtpUrl } from './mail-settings.ts';

describe('SMTP_URL', () => {
  it.each([
    ['smtp://mail.example', { host: 'mail.example', port: 587, isSecure: false, needsStartTls: false, login: null }],
    ['smtps://mail.example/', { host: 'mail.example', port: 465, isSecure: true, needsStartTls: false, login: null }],
    ['smtp://u:p%40%2Fss@mail.example:25', { host: 'mail.example', port: 25, isSecure: false, needsStartTls: true, login: { user: 'u', password: 'p@/ss' } }],
    ['smtps://u:p@mail.example', { host: 'mail.example', port: 465, isSecure: true, needsStartTls: false, login: { user: 'u', password: 'p' } }],
    ['smtp://u:p@localhost:1025', { host: 'localhost', port: 1025, isSecure: false, needsStartTls: false, login: { user: 'u', password: 'p' } }],
    ['smtp://u:p@[::1]:1025', { host: '::1', port: 1025, isSecure: false, needsStartTls: false, login: { user: 'u', password: 'p' } }],
    ['smtp://u:p@127.0.0.1.example', { host: '127.0.0.1.example', port: 587, isSecure: false, needsStartTls: true, login: { user: 'u', password: 'p' } }],
  ])('%s', (text, server) => {
    expect(smtpUrl.parse(text)).toEqual(server);
  });

  it.each([
    'hunter2',
    'http://hunter2.example',
    'smtp://',
    'smtp://hunter2@mail.example',
    'smtp://:hunter2@mail.example',
    'smtp://u:hunter2%zz@mail.example',
    'smtp://u:hunter2@mail.example/path',
    'smtp://u:hunter2@mail.example?tls.rejectUnauthorized=false',
    'smtp://u:hunter2@mail.example#x',
    'smtp://u:hunter2@mail.example:99999',
  ])('refuses %s, and does not quote it', (text) => {
    const { error } = smtpUrl.safeParse(text);

    expect(error?.message).toContain('smtps://host:port');
    expect(error?.message).not.toContain('hunter2');
  });
});

describe('MAIL_FROM', () => {
  it.each([
    ['keys@example.com', { name: '', address: 'keys@example.com' }],
    ['<keys@example.com>', { name: '', address: 'keys@example.com' }],
    ['Keys of Acme, Inc. <keys@example.com>', { name: 'Keys of Acme, Inc.', address: 'keys@example.com' }],
  ])('%s', (text, sender) => {
    expect(mailFrom.parse(text)).toEqual(sender);
  });

  it.each([
    '',
    'keys',
    'keys@example.com, b@example.com',
    'a\r\nBcc: b@example.com <keys@example.com>',
    'a <keys@example.com>\r\nBcc: b@example.com',
    'a <b> <keys@example.com>',
    '"a" <keys@example.com>',
  ])('refuses %j', (text) => {
    expect(mailFrom.safeParse(text).success).toBe(false);
  });
});

it('needs both settings, or none', () => {
  const [server, from] = [smtpUrl.parse('smtp://mail.example'), mailFrom.parse('keys@example.com')];

  expect(mailConfigOf({ SMTP_URL: server, MAIL_FROM: from })).toEqual({ server, from });
  expect(mailConfigOf({})).toBeNull();
  expect(() => mailConfigOf({ SMTP_URL: server })).toThrow('MAIL_FROM: must be set');
  expect(() => mailConfigOf({ MAIL_FROM: from })).toThrow('SMTP_URL: must be set');
});
