import { escaped, plainPage } from '#shared/http-server/plain-page.ts';
import type { Approval } from './issue-code.ts';

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
  return plainPage(
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
  return plainPage(
    'The key is approved',
    `<p>Enter this code in the program that sent you here, within ten minutes:</p>\n<p><code>${escaped(code)}</code></p>`,
  );
}
