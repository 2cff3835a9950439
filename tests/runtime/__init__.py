"""Tests of the runtime. P1 to P18 in their names are the properties of a small supervised runtime.

P1 every ask ends once; P2 no silent redelivery; P3 queued work survives; P4 restart budget and
back-off; P5 giving up is raised; P6 order and strategies; P7 bounded mailboxes; P8, P9 no cycle;
P10 control overtakes; P11 deadlines travel; P12 cancellation is no crash; P13 shutdown; P14 work
beside a crash; P15 state is rebuilt in ``on_start``; P16 messages are frozen; P17 what can be
seen; P18 nothing is left behind.

What this suite must notice. Each of these was put into a copy of ``actors/runtime`` by hand, and
the tests named beside it failed:

1. supervisor: ``GaveUp`` is kept and not raised. ``p5_giving_up_raises_out_whatever_the_block_
   does`` (it looks at a record behind the block), ``p15_a_start_that_keeps_failing_gives_up``, and
   the interleavings of P1.
2. supervisor: ``GaveUp`` is raised only if the block was not cancelled meanwhile.
   ``p5_giving_up_is_not_hidden_by_a_cancellation``.
3. supervisor: actors are stopped in start order. ``p1_an_ask_is_answered_through_a_chain_of_
   actors``, ``p6_after_giving_up_the_others_stop_in_reverse_order``.
4. mailbox: what a crash hands back goes to the tail.
   ``p2_an_idempotent_message_is_handed_on_once``,
   ``p3_messages_handed_back_come_first_and_in_order``.
5. mailbox: closing does not wake blocked senders. ``p5_pending_asks_fail_and_blocked_senders_wake``
   and the interleavings of P1, by time.
6. mailbox: an expired ask is handed out.
   ``p11_an_expired_ask_is_answered_at_dequeue_and_not_handed_out``.
7. aftermath: a message beside a crash is counted as if it had crashed itself.
   ``p14_handlers_beside_a_crash_end_with_it``.
8. envelope: an asker that leaves does not cancel the handler. ``p12_an_ask_cancelled_by_its_caller_
   cancels_the_work_below``.
9. reference: a nested ask does not inherit the deadline.
   ``p11_nested_asks_have_the_smaller_deadline``.
10. cell: its task is not shielded, so that an outer cancellation ends all actors at once.
    ``p12_cancellation_is_not_a_crash``, ``p13_on_stop_is_shielded_and_bounded``.

A first version of the interleavings let a runtime pass that never lets blocked senders in: leaving
the block answered what was stuck. Hence their end ``settle``, which then found that an asker
restarted with the actor it crashed asked the same again, for ever.
"""
