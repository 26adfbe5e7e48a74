/** Signing in with a key, or by a one-time link whose code stands behind the #. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { useAct } from '../api';
import { Button, Field, Form, Loading, Problem, TextInput } from '../components';
import { ThemeButton } from '../components/account';
import { BrandMark } from '../components/brand';
import { navigate, useLocation } from '../router';
import { signIn } from '../session';

function codeOfLink(): string {
  return new URLSearchParams(location.hash.slice(1)).get('code') ?? '';
}

/** Whoever asked for a page goes on to it; who came to sign in goes to the first. */
function goOn(path: string): void {
  if (path === '/ui/sign-in') navigate('/ui/', { replace: true });
}

export function SignInPage(): JSX.Element {
  const { path } = useLocation();
  const [code, setCode] = useState(codeOfLink);
  const [key, setKey] = useState('');
  const { busy, error, run } = useAct();
  useEffect(() => {
    document.title = 'Sign in · Fairway';
    if (!code) return;
    history.replaceState(null, '', location.pathname + location.search); // it works once only
    void run(() => signIn({ code })).then((done) => (done ? goOn(path) : setCode('')));
  }, []);
  const submit = async (): Promise<void> => {
    if (await run(() => signIn({ key: key.trim() }))) goOn(path);
  };
  return (
    <main class="alone">
      <div class="sign-in">
        <div class="sign-in-top">
          <span class="brand">
            <BrandMark />
            <span>Fairway</span>
          </span>
          <ThemeButton />
        </div>
        <h1>Sign in</h1>
        {code ? (
          <Loading text="Signing in by your link…" lines={2} />
        ) : (
          <>
            <p class="sign-in-about">
              With an operator’s key you see the platform, with a tenant’s key that tenant.
            </p>
            <Form onSubmit={() => void submit()}>
              <Field label="API key" hint="It is exchanged for a session and not kept here.">
                <TextInput
                  type="password"
                  value={key}
                  onInput={setKey}
                  placeholder="fw_…"
                  autoComplete="current-password"
                  autoFocus
                  mono
                />
              </Field>
              {error && <Problem error={error} />}
              <Button kind="primary" submit busy={busy} disabled={key.trim() === ''}>
                Sign in
              </Button>
            </Form>
            <p class="sign-in-foot">
              No key at hand? On the server, <code>fairway dashboard</code> prints a link that signs
              you in once.
            </p>
          </>
        )}
      </div>
    </main>
  );
}
