import type { Approval } from './issue-code.ts';

const ESCAPED: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** The form for approving a key. It works without scripts. @param problem null: it is shown for the first time */
export function approvalPage(approval: Approval, problem: string | null): string {
  const { callback_url: callback, limit, usage_limit_type: reset, expires_at: expiresAt, key_label: label } = approval;
  const app = callback === undefined ? 'The program that sent you here' : new URL(callback).host;
  const facts = [
    `Name: ${label ?? 'none'}`,
    `Limit: ${limit == null ? 'none' : `${limit} US dollars${reset == null ? '' : `, ${reset}`}`}`,
    `Expires: ${expiresAt ?? 'never'}`,
  ];
  const hidden = Object.entries(approval).filter(([, value]) => value != null);
  return page(
    'Approve a key',
    `<p><strong>${escaped(app)}</strong> asks for a key to the model router.</p>
<ul>${facts.map((fact) => `<li>${escaped(fact)}</li>`).join('')}</ul>
${problem === null ? '' : `<p role="alert">${escaped(problem)}</p>`}
<form method="post" action="/auth">
${hidden.map(([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(String(value))}">`).join('\n')}
<p><label>Management key <input type="password" name="management_key" autocomplete="off" required></label></p>
<p><button type="submit">Approve</button></p>
</form>`,
  );
}

/** Of an approval without a callback. */
export function codePage(code: string): string {
  return page('The key is approved', `<p>Enter this code in the program that sent you here, within ten minutes:</p>\n<p><code>${escaped(code)}</code></p>`);
}

/** No script, style, picture or frame. @param callback browsers apply `form-action` to the redirect as well */
export function pageHeaders(callback: string | undefined): Record<string, string> {
  const targets = callback === undefined ? "'self'" : `'self' ${new URL(callback).origin}`;
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action ${targets}`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    // With `no-referrer` browsers would send `Origin: null` with the form.
    'referrer-policy': 'same-origin',
  };
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title></head>
<body><h1>${title}</h1>
${body}
</body></html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPED[character] ?? '');
}
