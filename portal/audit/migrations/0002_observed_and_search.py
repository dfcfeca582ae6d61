from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='auditline',
            name='origin',
            field=models.CharField(blank=True, default='', help_text='What was seen, so that it is written down once.', max_length=160),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='auditline',
            name='source',
            field=models.CharField(blank=True, default='', help_text='Empty: an act in Berth. cluster: seen in the cluster.', max_length=8),
            preserve_default=False,
        ),
        migrations.AddIndex(
            model_name='auditline',
            index=models.Index(fields=['person', '-number'], name='audit_by_person'),
        ),
        migrations.AddIndex(
            model_name='auditline',
            index=models.Index(fields=['action', '-number'], name='audit_by_action'),
        ),
        migrations.AddIndex(
            model_name='auditline',
            index=models.Index(fields=['subject', '-number'], name='audit_by_subject'),
        ),
        migrations.AddIndex(
            model_name='auditline',
            index=models.Index(fields=['at'], name='audit_by_time'),
        ),
        migrations.AddConstraint(
            model_name='auditline',
            constraint=models.UniqueConstraint(condition=models.Q(('origin', ''), _negated=True), fields=('origin',), name='seen_once'),
        ),
    ]
