/** An error of a request, with its code where it has one. */
export function Problem({ error }: { error: Error }) {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  return (
    <p class="problem" role="alert">
      {error.message}
      {code !== null && <code> {code}</code>}
      {/* Of the agent: the router's errors have no code. */}
      {code === 'unauthorized' && <a href="/auth/login?next=/console"> Log in again</a>}
    </p>
  );
}
