import type { MailRow } from './mail-rows.ts';

export interface MailText {
  subject: string;
  text: string;
}

/** The mail to the owner of an exposed key. It names the key by its masked secret. */
export function exposedKeyMail({ keyLabel, keyName, exposedAt, exposedWhere }: Pick<MailRow, 'keyLabel' | 'keyName' | 'exposedAt' | 'exposedWhere'>): MailText {
  const since = exposedAt.toISOString().slice(0, 16).replace('T', ' ');
  const text = [
    `Your API key ${keyLabel} ("${keyName}") was found in a place where others can read it:`,
    `    ${exposedWhere}`,
    `The operator of the model router noted this at ${since} UTC. The key may be disabled since then.`,
    'Please do the following:',
    ['1. Revoke the key.', '2. Create a replacement, and use it in your applications.', '3. Remove the key from the place above.'].join('\n'),
    'Keys must not be in public repositories, or in pages and apps that run at your customers.',
  ];
  return { subject: `Your API key ${keyLabel} was exposed`, text: `${text.join('\n\n')}\n` };
}
